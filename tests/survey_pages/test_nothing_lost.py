"""Reload, back, double clicks, two tabs, a lost connection: nothing is lost, nothing is double."""

import pytest
from pages import arrive, begin, choose, ranked_names, send, skip, status, unranked_names


@pytest.mark.slow
def test_an_unsent_order_outlives_reload_and_instructions_and_goes_when_it_is_sent(
    open_page, survey
):
    page = open_page()
    begin(page, survey.url, "reload")
    a, b, c, *_ = unranked_names(page)
    choose(page, c, a, b)
    page.reload()
    assert ranked_names(page) == (c, a, b)
    page.get_by_role("link", name="How it works").click()
    page.get_by_role("link", name="Continue to the question").click()
    assert ranked_names(page) == (c, a, b)
    send(page)
    arrive(page, 2)
    assert ranked_names(page) == ()
    assert page.evaluate("sessionStorage.length") == 0
    assert survey.orders("reload") == [(c, a, b)]


def test_a_lost_connection_loses_nothing(open_page, survey):
    page = open_page()
    begin(page, survey.url, "offline")
    a, b, *_ = unranked_names(page)
    choose(page, b, a)
    page.context.set_offline(True)
    send(page)
    page.wait_for_timeout(200)
    assert status(page).startswith("There is no connection to the internet. Your ranking is kept")
    assert ranked_names(page) == (b, a)
    page.context.set_offline(False)
    send(page)
    arrive(page, 2)
    assert survey.orders("offline") == [(b, a)]


@pytest.mark.slow
def test_the_back_button_leads_on_and_the_first_of_two_tabs_counts(open_page, survey):
    page = open_page()
    begin(page, survey.url, "tabs")
    other = page.context.new_page()
    other.goto(page.url)
    a, b, *_ = unranked_names(page)
    assert unranked_names(other)[:2] == (a, b)
    choose(page, a, b)
    choose(other, b, a)
    send(page)
    arrive(page, 2)
    with other.expect_response("**/p/*/1") as response:
        send(other)
    assert response.value.status == 409
    assert "Your first answer is saved" in other.locator("main").inner_text()
    assert other.locator(".kept li").all_inner_texts() == [a, b]
    other.get_by_role("link", name="Continue").click()
    arrive(other, 2)
    page.go_back()
    arrive(page, 2)
    assert ranked_names(page) == ()
    assert survey.orders("tabs") == [(a, b)]


@pytest.mark.slow
def test_nothing_ranked_is_not_sent_and_a_ranking_is_not_skipped_by_mistake(open_page, survey):
    page = open_page()
    begin(page, survey.url, "empty")
    send(page)
    group = page.get_by_role("group", name="Your ranking")
    message = "Nothing is ranked yet. Choose at least one item, or press “Skip: I do not know”."
    assert group.evaluate("group => group === document.activeElement")
    expect_description(group, message)
    a, b, *_ = unranked_names(page)
    choose(page, a)
    expect_description(group, "")
    skip(page)
    asked = "1 ranked: press Next to send your ranking, or Skip again to skip the question."
    assert status(page) == asked
    choose(page, b)
    skip(page)
    assert status(page) == asked.replace("1", "2")
    assert survey.orders("empty") == []
    skip(page)
    arrive(page, 2)
    assert survey.orders("empty") == [()]


def expect_description(locator, text):
    found = locator.evaluate(
        "node => document.getElementById(node.getAttribute('aria-describedby')).textContent"
    )
    assert found == text
