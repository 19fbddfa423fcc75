"""A small study for the tests, and changes of it."""

from rankshot.survey.study import Question, Study

ITEMS = ("bus", "fox", "leopard")


def small_study(**changes):
    """Return a study of four questions, or one that differs in some fields.

    With other items, but without questions, each of the four targets has all items.
    """
    items = changes.get("items", ITEMS)
    plan = {
        "title": "Alike",
        "prompt": "Which of these are most like {target}?",
        "consent": "Do you agree?",
        "items": items,
        "unshown": "after",
        "questions": questions_about("cat", "dog", "car", "van", items=items),
        "answers_per_question": 1_000_000,
        "questions_per_participant": 4,
        "repeats": 0,
        # All requests come from few addresses.
        "starts_per_hour": 1_000_000,
    }
    return Study(**plan | changes)


def questions_about(*targets, items=ITEMS):
    """Return one question per target, which shows all items."""
    return tuple(Question(target, items) for target in targets)


def prolific_ids(person, study, session):
    """Return what is stored of somebody who comes from Prolific."""
    return {"platform_id": person, "platform_study": study, "platform_session": session}
