"""What becomes of tables as arenas, R, Excel, Qualtrics, SPSS, PrefLib and survey tools write them.

A table has one right reading, or it is an error that names what decides. Each shape is the ending
of the file, its text, and what is read: rankings with > and =, separated by semicolons; or, after an
exclamation mark, what the fields of the error have: @parameter, places, values and options. Options of `read_rankings` follow.
"""
# ruff: noqa: E501, ISC004 (one line per shape)

import gzip
import json
import warnings

import pytest

import rankshot as rs
from rankshot.core.errors import InputError
from refusals import refuses

TEA = "tea>beer>juice; beer>tea>juice"
ARENA = "x>y; z>x; y=z"
BOTH = "! @outcomes & outcomes='index' & outcomes='score'"
PLACES_OR_SCORES = "! @layout & layout='places' & layout='scores'"

SHAPES = [
    # ---- Votes: arena dumps and preference data
    ("csv", "model_a,model_b,winner\nx,y,model_a\nx,z,model_b\ny,z,tie\n", ARENA),
    ("csv", "model_a,model_b,winner\nx,y,x\nx,z,z\ny,z,both_bad\n", ARENA),
    ("csv", "Model A,Model B,Winner\nx,y,Model A\nx,z,Model B\ny,z,Tie\n", ARENA),
    ("csv", " model_a , model_b , winner \n x , y , a \nx,z,b\ny,z,tie\n", ARENA),
    ("csv", "model_a;model_b;winner\nx;y;a\nx;z;b\ny;z;tie\n", ARENA),
    ("csv", "model_a\tmodel_b\twinner\nx\ty\ta\nx\tz\tb\ny\tz\ttie\n", ARENA),
    ("tsv", "model_a\tmodel_b\twinner\nx\ty\ta\nx\tz\tb\ny\tz\ttie\n", ARENA),
    ("csv", "\ufeffmodel_a;model_b;winner\r\nx;y;a\r\nx;z;b\r\ny;z;tie\r\n", ARENA),
    ("csv.gz", "model_a,model_b,winner\nx,y,a\nx,z,b\ny,z,tie\n", ARENA),
    (
        "jsonl",
        '{"model_a": "x", "model_b": "y", "winner": "model_a", "conversation_a": [{"role": "u"}]}\n'
        '{"model_a": "x", "model_b": "z", "winner": "model_b"}\n'
        '{"model_a": "y", "model_b": "z", "winner": "tie"}\n',
        ARENA,
    ),
    ("ndjson", '{"winner": "x", "loser": "y"}\n{"winner": "z", "loser": "x"}\n', "x>y; z>x"),
    ("jsonl.gz", '{"winner": "x", "loser": "y"}\n\n{"winner": "z", "loser": "x"}\n', "x>y; z>x"),
    ("json", '[{"winner": "x", "loser": "y"}, {"loser": "x", "winner": "z"}]', "x>y; z>x"),
    ("json", '{"winner": ["x", "z"], "loser": ["y", "x"]}', "x>y; z>x"),
    ("json", '{"winner": {"0": "x", "1": "z"}, "loser": {"0": "y", "1": "x"}}', "x>y; z>x"),
    ("json", '{"winner": ["x", "z"], "loser": ["y"]}', "! @table"),
    ("json", "{nothing", "! @file"),
    ("jsonl", '{"winner": "x", "loser": "y"}\n[1]\n', "! @line & shape.jsonl:2"),
    (
        "csv",
        "id,model_a,model_b,winner_model_a,winner_model_b,winner_tie\n"
        "1,x,y,1,0,0\n2,x,z,0,1,0\n3,y,z,0,0,1\n",
        ARENA,
    ),
    (
        "csv",
        "id,model_a,model_b,winner_model_a,winner_model_b,winner_tie\n1,x,y,1,1,0\n",
        "! shape.csv:2 & @row",
    ),
    ("csv", "generator_1,generator_2,preference\nx,y,1\nx,z,2\ny,z,1.5\n", ARENA),
    ("csv", "option a,option b,vote\nx,y,option a\nx,z,option b\n", "x>y; z>x"),
    ("csv", "left,right,result\nx,y,left\nx,z,right\n", "x>y; z>x"),
    ("csv", "first,second,outcome\nx,y,first\nx,z,second\n", "x>y; z>x"),
    ("csv", "White,Black,Result\nx,y,1-0\nx,z,0-1\ny,z,1/2-1/2\n", ARENA),
    ("csv", "player_a,player_b,result\nx,y,win\nx,z,loss\ny,z,draw\n", ARENA),
    ("csv", "assistant_a,assistant_b,verdict\nx,y,[[A]]\nx,z,[[B]]\ny,z,[[C]]\n", ARENA),
    ("csv", "model_a,model_b,verdict\nx,y,A>>B\nx,z,B>A\ny,z,A=B\n", ARENA),
    ("csv", "winner,loser\nx,y\nz,x\n", "x>y; z>x"),
    ("csv", "winner,loser,draw\nx,y,no\nz,x,0\ny,z,yes\n", ARENA),
    ("csv", "winner,loser,is_tie\nx,y,False\nz,x,False\ny,z,True\n", ARENA),
    ("csv", "winner,loser,IsDraw\nx,y,\nz,x,\ny,z,1\n", ARENA),
    ("csv", "winner,loser,result\nx,y,win\nz,x,win\ny,z,draw\n", ARENA),
    ("csv", "winner,loser,outcome\nx,y,decisive\nz,x,decisive\ny,z,tie\n", ARENA),
    ("csv", "winner,loser,equal\nx,y,no\nz,x,no\ny,z,yes\n", ARENA),
    ("csv", "winner,loser,status\nx,y,won\nz,x,won\ny,z,draw\n", ARENA),
    ("csv", "winner,loser,result\nx,y,2-1\ny,z,draw\n", "! @tie & tie='result' & ignore='result'"),
    ("csv", "winner,loser,result\nx,y,2-1\ny,z,3-1\n", "x>y; y>z"),
    ("csv", "winner,loser,number_of_votes\nx,y,3\nz,x,1\n", "! @count & count='number_of_votes'"),
    ("csv", "winner,loser,vote_count\nx,y,3\nz,x,1\n", "3 x>y; z>x"),
    ("csv", "winner,loser,client_id\nx,y,3\nz,x,1\nx,y,3\n", "! @rater & rater='client_id'"),
    ("csv", "winner,loser,who\nx,y,ann\nz,x,bob\nx,y,ann\n", "! @rater & ignore='who'"),
    ("csv", "winner,loser,who\nx,y,ann\nz,x,bob\n", "x>y; z>x"),
    ("csv", "winner,loser,task\nx,y,code\nz,x,maths\nx,y,code\n", "x>y; z>x; x>y"),
    ("csv", "winner,loser\nx,y\nno winner,x\n", "! @missing & missing='no winner'"),
    ("csv", "winner,loser,draw,is_tie\nx,y,1,0\nx,z,0,1\n", "! @tie & tie='draw' & tie='is_tie'"),
    ("csv", "winner,loser,draw\nx,y,1\n", "x>y", {"ignore": "draw"}),
    ("csv", "winner,loser,equal_votes\nx,y,0\ny,z,1\n", "x>y; y=z", {"tie": "equal_votes"}),
    ("csv", "model_a,model_b,winner,is_tie\nx,y,a,0\ny,z,,1\n", "x>y; y=z"),
    ("csv", "winner,loser,n\nx,y,3\nz,x,1\n", "! @count & count='n' & ignore='n'"),
    ("csv", "winner,loser,n\nx,y,3\nz,x,1\n", "3 x>y; z>x", {"count": "n"}),
    ("csv", "winner,loser,n\nx,y,3\nz,x,1\n", "x>y; z>x", {"ignore": "n"}),
    ("csv", "winner,loser,n\nx,y,1\nz,x,2\n", "x>y; z>x"),
    ("csv", "winner,loser,Count,freq\nx,y,3,2\n", "! @count & count='Count' & count='freq'"),
    ("csv", "winner,loser,judge,user_id\nx,y,a,1\nx,y,b,1\nx,y,a,2\n", "! @rater & rater='judge'"),
    ("csv", "winner,loser,judge,judge_id\nx,y,a,1\nz,x,b,2\nx,y,a,1\n", "x>y; z>x; x>y"),
    ("csv", "winner,loser,model\nx,y,g\nx,z,g\nx,y,h\n", "! @rater & ignore='model'"),
    ("csv", "l,r,winner\nx,y,x\n", "! @winner", {"columns": {"a": "l", "b": "r"}}),
    ("csv", "Winner,Loser,Tie\nx,y,no\nz,x,0\ny,z,yes\n", ARENA),
    ("csv", "model_a,model_b,winner\n3,1,3\n1,2,2\n", "3>1; 2>1"),
    ("csv", "model_a,model_b,winner\nx,y,0\nx,z,1\n", BOTH),
    ("csv", "model_a,model_b,winner\nx,y,1\nx,z,1\n", BOTH),
    ("csv", "model_a,model_b,winner\nx,y,0\nx,z,0.5\ny,z,1\n", BOTH),
    ("csv", "model_a,model_b,winner\nx,y,1.0\nx,z,-1\ny,z,0\n", BOTH),
    ("csv", "model_a,model_b,winner\nx,y,1\nx,z,-1\ny,z,0\n", ARENA, {"outcomes": "score"}),
    ("csv", "model_a,model_b,winner\nx,y,0\nx,z,1\n", "x>y; z>x", {"outcomes": "index"}),
    ("csv", "model_a,model_b,winner\nx,y,1\nx,z,0\n", "x>y; z>x", {"outcomes": "score"}),
    ("csv", "model_a,model_b,winner\nx,y,1\nx,z,2\n", "x>y; z>x", {"outcomes": "index"}),
    ("csv", "model_a,model_b,winner\nx,y,0\nx,z,1\ny,z,2\n", "! @'winner'"),
    ("csv", "model_a,model_b,winner\nx,y,3\n", "! @'winner'"),
    ("csv", "model_a,model_b,winner\n2,1,1\n1,2,2\n", "! @outcomes & outcomes='name' & outcomes='index'"),
    ("csv", "model_a,model_b,winner\n2,1,1\n1,2,2\n", "1>2; 2>1", {"outcomes": "name"}),
    ("csv", "model_a,model_b,winner\n2,1,1\n1,2,2\n", "2>1; 2>1", {"outcomes": "index"}),
    ("csv", "model_a,model_b,winner\nb,a,b\na,b,tie\n", "! @outcomes & outcomes='name' & outcomes='side'"),
    ("csv", "model_a,model_b,winner\nb,a,b\na,b,tie\n", "a>b; a=b", {"outcomes": "side"}),
    ("csv", "model_a,model_b,winner\nb,a,b\na,b,tie\n", "b>a; a=b", {"outcomes": "name"}),
    ("csv", "model_a,model_b,winner\nb,a,b\nb,c,c\na,b,tie\n", "b>a; c>b; a=b"),
    ("csv", "model_a,model_b,winner\nx,y,True\n", BOTH),
    ("csv", "model_a,model_b,winner\nx,y,True\nx,z,False\n", "x>y; z>x", {"outcomes": "score"}),
    ("json", '{"model_a": ["x", "x"], "model_b": ["y", "z"], "winner": [true, false]}', BOTH),
    ("csv", "model_a,model_b,winner\nx,y,\n", "! @row & 'tie' & on_error='skip'"),
    ("csv", "model_a,model_b,winner\nNA,y,a\n", "! @row"),
    ("csv", "model_a,model_b,judge\nx,y,ann\n", "! @winner"),
    ("csv", "model_a,model_b,outcome,preference\nx,y,a,b\n", "! @winner & winner='outcome' & ignore="),
    ("csv", "model_a,model_b,left,right,winner\nx,y,u,v,a\n", "! @a & a='left'"),
    ("csv", "model_a,Model A,model_b,winner\nx,u,y,a\n", "! winner="),
    ("csv", "system 1;better;system 2\nx;1;y\n", "! a= & b= & winner="),
    ("csv", "chosen,rejected\nx,y\nz,x\n", "! a= & b= & winner="),
    ("csv", "chosen,rejected\nx,y\nz,x\n", "x>y; z>x", {"winner": "chosen", "loser": "rejected"}),
    ("csv", "model_a,model_b,winner,count\nx,y,a,3\n", "3 x>y"),
    ("csv", "model_a,model_b,winner,weight\nx,y,a,30\ny,z,tie,10\n", "1.5 x>y; 0.5 y=z"),
    ("csv", "winner,loser,weight,count\nx,y,2,10\ny,z,0,10\n", "10 x>y; 0 y>z"),
    ("csv", "model_a;model_b;winner;weight\nx;y;a;1,5\ny;z;b;0,5\n", "1.5 x>y; 0.5 z>y"),
    # ---- Ballots: one column per place
    ("csv", "name,third,second,first\nann,juice,beer,tea\nbob,juice,tea,beer\n", TEA),
    ("csv", "rank3,rank2,rank1\njuice,beer,tea\njuice,tea,beer\n", TEA),
    ("csv", "3rd,1st,2nd\njuice,tea,beer\njuice,beer,tea\n", TEA),
    ("csv", "Third Choice,First Choice,Second Choice\njuice,tea,beer\njuice,beer,tea\n", TEA),
    ("csv", "Rank #2,Rank #1,Rank #3\nbeer,tea,juice\ntea,beer,juice\n", TEA),
    ("csv", "preference_1,preference_2,preference_3\ntea,beer,juice\nbeer,tea,juice\n", TEA),
    ("csv", "0,1,2\ntea,beer,juice\nbeer,tea,juice\n", TEA),
    ("csv", "rank10,rank2,rank1\njuice,beer,tea\njuice,tea,beer\n", TEA),
    ("csv", "first,1st,second\ntea,beer,juice\n", "! @layout"),
    ("csv", "1,2,3\ntea,beer,N/A\nbeer,NULL,.\n", "tea>beer; beer"),
    ("csv", "1,2\ntea,beer=juice\nbeer,tea=juice\n", "! @items"),
    ("csv", "1,2,3\ntea,beer=juice,\nbeer,juice,tea\n", "! @items"),
    ("csv", "1,2\nE=mc2,F=ma\n", "E=mc2>F=ma", {"items": ["E=mc2", "F=ma"]}),
    ("csv", "best,middle,worst\ntea,beer,juice\n", "! @layout & layout='orders'"),
    ("csv", "x,y,z\ntea,beer,juice\nbeer,tea,juice\n", TEA, {"layout": "orders"}),
    ("csv", "name,1,2,region\nann,tea,beer,north\n", "! @ignore & ignore='region' & ignore=''"),
    ("csv", "name,1,2,region\nann,tea,beer,north\n", "tea>beer", {"ignore": "region"}),
    ("csv", "1,2,age,date\ntea,beer,31,2026-01-01\n", "! @ignore & ignore='age,date'"),
    ("csv", "1,2,last\ntea,beer,juice\n", "! @ignore & ignore='last'"),
    ("csv", "who,1,2\nann,tea,beer\n", "! 'who' & rater="),
    ("csv", "who,1,2\nann,tea,beer\n", "tea>beer", {"rater": "who"}),
    ("csv", "Respondent ID,1,2\n7,tea,beer\n", "tea>beer"),
    ("csv", ',"first","second"\n"1","tea","beer"\n"2","beer","tea"\n', "tea>beer; beer>tea"),
    ("csv", "Unnamed: 0,first,second\n0,tea,beer\n1,beer,tea\n", "tea>beer; beer>tea"),
    ("csv", "tea,beer,cola\nbeer,tea,juice\n", "! @columns"),
    ("csv", "vote\ntea > beer = juice\nbeer>tea>juice\n", "tea>beer=juice; beer>tea>juice"),
    ("csv", "Rank these\ntea;beer;juice;\nbeer;tea;juice;\n", TEA),
    ("csv", 'ID,Rank these\n1,tea;beer;juice;\n2,beer;tea;juice;\n', TEA),
    ("csv", 'ID,Which\n1,"tea, beer"\n', "! @items"),
    ("csv", "name,first,second,count\nann,tea,beer,4\n", "4 tea>beer"),
    ("csv", "1,2,3\ntea,over vote,beer\n", "! @missing & missing='over vote'"),
    ("csv", "1,2,3\ntea,overvote,beer\n", "tea>beer", {"missing": "overvote"}),
    ("csv", "1,2\nNA,Fiji\nFiji,NA\n", "NA>Fiji; Fiji>NA", {"missing": ""}),
    ("csv", "vote\ntea|beer|juice\nbeer|tea|juice\n", "! @items"),
    ("csv", "vote\ntea > abstain\n", "! @missing"),
    ("csv", "name,tea,beer\na,0,1\nb,1,0\n", "! @missing & missing='0'", {"layout": "places"}),
    ("csv", "name,tea,beer\na,0,1\nb,1,0\n", "beer; tea", {"layout": "places", "missing": "0"}),
    ("csv", "time,tea,beer\n9,1,2\n8,2,1\n", "! @ignore", {"layout": "places"}),
    ("csv", "first,second,weight\ntea,beer,40\nbeer,tea,20\n", "1.3333 tea>beer; 0.66667 beer>tea"),
    # ---- Ballots: one column per item
    ("csv", "name,tea,beer,juice\nann,1,2,3\nbob,2,1,3\n", PLACES_OR_SCORES),
    ("csv", "name,tea,beer,juice\nann,1,2,3\nbob,2,1,3\n", TEA, {"layout": "places"}),
    ("csv", "name,tea,beer,juice\nann,5,4,3\nbob,4,5,3\n", TEA, {"layout": "scores"}),
    ("csv", "tea,beer,juice\n1.5,1.5,3\n1,2,3\n", PLACES_OR_SCORES),
    ("csv", "tea,beer,juice\n1.5,1.5,3\n", "tea=beer>juice", {"layout": "places"}),
    ("csv", "tea;beer;juice\n0,9;0,5;0,1\n", "tea>beer>juice", {"layout": "scores"}),
    ("csv", "tea,beer,juice\n1st,2nd,3rd\n2nd,1st,3rd\n", TEA),
    ("csv", "Rank [tea],Rank [beer]\nFirst choice,Second choice\n", "Rank [tea]>Rank [beer]"),
    ("csv", "1,2,3\n2,1,3\n", f"{PLACES_OR_SCORES} & layout='orders'"),
    ("csv", "1,2,3\n2,1,3\n", "2>1>3", {"layout": "orders"}),
    ("csv", "1,2,3\n2,1,3\n", "2>1>3", {"layout": "places"}),
    ("csv", "Q1_1,Q1_2,Q1_3\n2,1,3\n", PLACES_OR_SCORES),
    ("csv", "first,second,third\n7,3,5\n3,7,5\n", "7>3>5; 3>7>5"),
    ("csv", "tea,beer\n1,NA\n1,2\n", "tea; tea>beer", {"layout": "places"}),
    ("csv", "tea,beer\n1,0\n1,2\n", "tea; tea>beer", {"layout": "places"}),
    ("csv", "tea,beer,rum\n5,NA,3\n1,2,3\n", "tea>rum s; rum>beer>tea s", {"layout": "scores"}),
    ("csv", "tea,beer\n1,.\n1,2\n", "tea; tea>beer", {"layout": "places"}),
    ("csv", "tea,beer,rum\n5,-99,3\n1,2,3\n", "! @missing & missing='-99'", {"layout": "scores"}),
    (
        "csv",
        "tea,beer,rum\n5,-99,3\n1,2,3\n",
        "tea>rum s; rum>beer>tea s",
        {"layout": "scores", "missing": "-99"},
    ),
    ("csv", "tea,beer,rum\n5,999,3\n1,2,3\n", "! @missing & missing=''", {"layout": "scores"}),
    ("csv", "tea,beer,rum\n5,-1,3\n", "tea>rum>beer", {"layout": "scores", "missing": ""}),
    ("csv", "user_id,tea,beer\n812,1,2\n", "beer>tea", {"layout": "scores"}),
    ("csv", "age,tea,beer\n31,1,2\n", "! 'age' & ignore='age'", {"layout": "scores"}),
    ("csv", "age,tea,beer\n31,1,2\n", "beer>tea", {"layout": "scores", "ignore": "age"}),
    ("csv", "age,tea,beer\n31,1,2\n", "age>beer>tea", {"layout": "scores", "ignore": ""}),
    ("csv", "age,tea,beer\n31,1,2\n", "beer>tea", {"layout": "scores", "items": ["tea", "beer"]}),
    ("csv", "tea,beer,rum,tall\n1,2,3,181\n2,1,,170\n", "! @ignore", {"layout": "places"}),
    ("csv", "tea,beer,rum\n1,2,2\n2,1,3\n", "tea>beer=rum; beer>tea>rum", {"layout": "places"}),
    ("csv", "tea,beer,rum\n1,7,9\n8,2,3\n", "tea>beer>rum; beer>rum>tea", {"layout": "places"}),
    ("csv", "tea,beer,rum,height\n" + ".1,.3,.2,181\n" * 5, "! @ignore", {"layout": "scores"}),
    ("csv", "region,tea,beer\nnorth,1,2\n", "! @ignore & ignore='region'"),
    ("csv", "region,tea,beer\nnorth,1,2\n", "! @'region' & ignore=", {"layout": "places"}),
    (
        "csv",
        "Q1_1,Q1_2\nRank - tea,Rank - beer\n1,2\n",
        "! @'Q1_1' & shape.csv:2",
        {"layout": "places"},
    ),
    ("csv", ',tea,beer\n1,1,2\n2,2,1\n', "tea>beer; beer>tea", {"layout": "places"}),
    ("csv", "tea,beer,weight\n1,2,30\n2,1,10\n", "1.5 tea>beer; 0.5 beer>tea", {"layout": "places"}),
    ("csv", "tea,beer,n\n1,2,30\n2,1,10\n", "! 'n' & ignore='n'", {"layout": "places"}),
    ("csv", "tea,beer\n2,1\n1,-1\n", "! @'beer' -1 & shape.csv:3", {"layout": "places", "missing": ""}),
    # ---- Long form: one row per item of a rater
    ("csv", "voter,item,rank\na,tea,1\nb,tea,-1\n", "! @'rank' & shape.csv:3", {"missing": ""}),
    ("csv", "voter,item,rank\na,tea,\nb,tea,NA\n", "! @rank"),
    ("csv", "voter,item,rank\na,tea,1\n", "! @layout", {"layout": "orders"}),
    ("csv", "voter,item,rank\na,tea,1\na,beer,2\nb,beer,1\nb,tea,2\n", "tea>beer; beer>tea"),
    ("csv", "item,rank,voter\nbeer,2,a\nbeer,1,b\ntea,1,a\ntea,2,b\n", "tea>beer; beer>tea"),
    ("csv", "Voter;Item;Rank\na;tea;1\na;beer;1\na;rum;3\n", "beer=tea>rum"),
    ("csv", "judge,item,score\na,tea,3\na,beer,9\nb,beer,1\nb,tea,2\n", "beer>tea; tea>beer"),
    ("csv", "user_id,product,rating\n1,tea,3\n1,beer,9\n2,rum,1\n2,tea,2\n", "beer>tea s; tea>rum s"),
    ("csv", "voter,candidate,position\na,tea,1\na,beer,NA\nb,beer,1\n", "tea; beer"),
    ("csv", "voter,item,rank\na,tea,1\na,beer,2\nb,rum,1\n", "tea>beer s; rum s", {"kind": "subset"}),
    ("csv", "judge,model,score\na,x,9\na,y,7\n", "x>y"),
    ("csv", "item,rank\ntea,1\nbeer,2\n", "! rater & target="),
    ("csv", "voter,item,rank\na,tea,1\na,tea,2\n", "! @item & tea & 'a' & target="),
    ("csv", "voter,item,rank,target\na,tea,1,q\na,tea,1,r\na,rum,2,r\n", "tea; tea>rum"),
    ("csv", "voter,item,rank\na,tea,0\na,beer,1\nb,beer,0\nb,tea,1\n", "! @missing & missing='0'"),
    ("csv", "voter,item,score\na,tea,-99\na,beer,5\n", "! @missing & missing='-99'"),
    ("csv", "tea,beer,rum\n5,88,3\n1,2,3\n", "! @missing & missing='88'", {"layout": "scores"}),
    ("csv", "voter,item,score\na,tea,-99\na,beer,5\na,rum,1\n", "beer>rum", {"missing": "-99"}),
    ("csv", "voter,item,rank,n\na,tea,1,2\na,beer,2,2\nb,tea,1,1\n", "! @count"),
    ("csv", "voter,item,rank\na,overvote,1\na,beer,2\n", "! @missing"),
    ("csv", "judge,item,rank,score\na,tea,1,9\n", "! @rank & rank='rank' & score='score'"),
    ("csv", "who,what,stars\na,tea,3\na,rum,5\n", "rum>tea", {"rater": "who", "item": "what", "score": "stars"}),
    ("jsonl", '{"voter": 1, "item": "tea", "rank": 1}\n{"voter": 1, "item": "rum", "rank": 2}', "tea>rum"),
    # ---- Rankings in JSON lines, and PrefLib
    ("jsonl.gz", '{"ranking": ["tea", "beer"]}', "tea>beer"),
    (
        "jsonl",
        '{"ranking": ["tea", "rum"], "shown": ["tea", "rum"]}\n{"ranking": ["gin"], "shown": ["gin"]}',
        "! shape.jsonl:1 & kind='top' & kind='subset'",
    ),
    (
        "jsonl",
        '{"ranking": ["tea"], "shown": ["tea", "rum"]}\n{"ranking": ["rum"], "shown": ["tea", "rum"]}',
        "tea; rum",
    ),
    ("jsonl", '{"ranking": ["tea"], "shown": ["tea"]}\n{"ranking": ["x"]}', "tea s; x s", {"kind": "subset"}),
    ("xlsx", "PK", "! @path & .csv"),
]  # fmt: skip


def describe(rankings, mark):
    """Write rankings as the table does: weights that are not 1, the order, and a mark of subsets."""
    rows = zip(rankings.orders(), rankings.weights, rankings.is_subset, strict=True)
    return "; ".join(
        f"{'' if weight == 1 else f'{weight:.5g} '}"
        f"{'>'.join('='.join([x] if isinstance(x, str) else x) for x in order)}"
        f"{mark if is_subset else ''}"
        for order, weight, is_subset in rows
    )


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape[1][:40])
def test_a_table_has_one_reading_or_is_an_error(tmp_path, shape):
    ending, text, wanted, *more = shape
    options = more[0] if more else {}
    path = tmp_path / f"shape.{ending}"
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    if wanted.startswith("!"):
        with pytest.raises(InputError) as caught:
            rs.read_rankings(path, **options)
        words = [word.strip() for word in wanted[1:].split("&")]
        error = caught.value
        named = f"@{error.parameter} {error.value} {error.where} {error.rule} {error.hint}"
        for name, values in error.choices.items():
            for value in values if isinstance(values, tuple) else (values,):
                named += f" {name}={value!r}"
        assert [word for word in words if word not in named] == []
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "these lists name at most")
        found = rs.read_rankings(path, **options)
    # All votes are subset rankings.
    assert describe(found, " s" if " s" in wanted else "") == wanted


def test_short_lists_of_places_in_a_long_table_are_the_first_places(tmp_path):
    path = tmp_path / "ballots.csv"
    rows = ["a,tea,1", "a,beer,2", "a,juice,3", "b,beer,1"]
    path.write_text("\n".join(["rater,item,place", *rows]))
    assert rs.read_rankings(path).is_subset.tolist() == [False, False]
    path.write_text("\n".join(["rater,item,score", *rows]))
    assert rs.read_rankings(path).is_subset.tolist() == [True, True]


RATERS = [
    "rater", "judge", "voter_number", "annotator_name", "User_ID", "userId", "WorkerId",
    "participant_id", "respondent_id", "reviewer_name", "evaluator_email", "labeler", "session_id",
    "evaluation_session_id", "judge_model", "judgeModel", "PROLIFIC_PID", "mturk_worker_id",
    "turker", "grader", "expert_id", "panelist", "username", "person_id", "rated_by", "userid",
    "anonymous_user_id", "user_hash", "ip_address", "human_annotator", "student_id", "ballot_id",
    "annotatorid", "submitted_by", "created_by",
]  # fmt: skip
UNUSED = [
    "user_language", "judge_score", "rater_age", "length", "timestamp", "tstamp", "date",
    "created_at", "turn", "language", "category", "topic", "model_size", "user_prompt_length",
    "comment", "temperature", "region", "response", "judge_turn", "num_turns", "tie_breaker",
]  # fmt: skip
PROMPTS = [
    "question_id", "prompt", "prompt_id", "promptId", "query", "conversation_id", "instruction_id",
    "promptid", "questionText",
]  # fmt: skip
BOARD = "model_a,model_b,winner,{}\n"


def read_beside(tmp_path, name, cells):
    path = tmp_path / "votes.csv"
    path.write_text(BOARD.format(name) + "".join(f"x,y,a,{cell}\n" for cell in cells))
    return rs.leaderboards.read_votes(path)


@pytest.mark.parametrize("name", RATERS)
def test_a_column_of_people_is_that_of_raters(tmp_path, name):
    found = read_beside(tmp_path, name, ["ann", "bob", "ann"])
    assert found.rankings.raters.tolist() == ["ann", "bob", "ann"]
    assert found.reading.used[name] == "rater"


@pytest.mark.parametrize("name", UNUSED)
def test_a_column_that_is_not_used_is_named(tmp_path, name):
    found = read_beside(tmp_path, name, ["3", "4", "3"])
    assert found.rankings.raters.tolist() == [None] * 3
    assert found.reading.unused == (name,)
    assert str(found.reading).endswith(f"not used: {name}")


@pytest.mark.parametrize("name", PROMPTS)
def test_prompts_are_clusters(tmp_path, name):
    prompts = [f"q{i % 12}" for i in range(24)]
    found = read_beside(tmp_path, name, prompts)
    assert found.clusters.tolist() == prompts
    assert found.reading.used[name] == "cluster"
    with refuses("cluster"):
        read_beside(tmp_path, name, [f"q{i % 3}" for i in range(24)])
    # A prompt for each vote explains nothing.
    assert read_beside(tmp_path, name, [f"q{i}" for i in range(24)]).clusters is None


@pytest.mark.parametrize("name", ["task_id", "qid", "example", "thread_id"])
def test_what_may_be_a_prompt_is_asked_for(tmp_path, name):
    with refuses("cluster"):
        read_beside(tmp_path, name, [f"q{i % 12}" for i in range(24)])
    # Few values are those of a category.
    assert read_beside(tmp_path, name, [f"q{i % 3}" for i in range(24)]).clusters is None


PAIR = {"question_id": 81, "model_1": "x", "model_2": "y", "judge": ["gpt-4", "pair-v2"], "turn": 1}
HARD = {"question_id": "q1", "model": "x", "judge": "gpt-4"}


@pytest.mark.parametrize(
    ("record", "orders"),
    [
        ({**PAIR, "g1_winner": "model_1", "g2_winner": "tie"}, [["x", "y"], [["x", "y"]]]),
        ({**PAIR, "g1_winner": "model_2", "g2_winner": "error"}, [["y", "x"]]),
        ({**HARD, "games": [{"score": "A>>B"}, {"score": "A=B"}]},
         [["baseline", "x"], [["baseline", "x"]]]),
        ({**HARD, "games": [{"score": "B>A"}, {"score": "A>B"}]}, [["x", "baseline"]] * 2),
        ({**HARD, "games": [{"score": {"score": "B>>A"}}, None]}, [["x", "baseline"]]),
    ],
)  # fmt: skip
def test_judgements_of_two_games_are_two_votes(tmp_path, record, orders):
    path, packed = tmp_path / "judgements.jsonl", tmp_path / "judgements.json.gz"
    path.write_text(json.dumps(record))
    packed.write_bytes(gzip.compress(json.dumps([record]).encode()))
    for each in (path, packed):
        found = rs.leaderboards.read_votes(each)
        assert found.rankings.orders() == orders
        assert found.rankings.rater_names == ("gpt-4",)


def test_scores_of_single_answers_are_compared_within_a_question(tmp_path):
    path = tmp_path / "judgements.jsonl"
    scores = [(81, "x", 9), (81, "y", 7), (81, "z", -1), (82, "x", 3), (82, "y", 3), (82, "z", 5)]
    records = (
        {"question_id": q, "model": m, "judge": ["gpt-4", "single-v1"], "score": s, "turn": 1}
        for q, m, s in scores
    )
    path.write_text("\n".join(map(json.dumps, records)))
    found = rs.leaderboards.read_votes(path)
    assert found.rankings.orders() == [["x", "y"], ["z", ["x", "y"]]]
    assert found.rankings.rater_names == ("gpt-4",)
    assert len({*found.clusters}) == 2


def test_named_columns_are_all_that_is_used():
    table = {"l": ["x"], "r": ["y"], "w": ["l"], "judge": ["a"], "n": [3], "prompt": ["p"]}
    reading = rs.leaderboards.read_votes(table, columns={"a": "l", "b": "r", "winner": "w"}).reading
    assert reading.used == {"l": "item", "r": "item", "w": "winner"}
    assert reading.unused == ("judge", "n", "prompt")


class Dataset:
    """What rankshot needs of a datasets.Dataset."""

    features, column_names = {}, ("model_a", "model_b", "winner")

    def with_format(self, kind):
        assert kind == "arrow"
        columns = {"model_a": ["x"], "model_b": ["y"], "winner": ["model_b"]}
        return [pytest.importorskip("pyarrow").table(columns)][0]

    def __getitem__(self, rows):
        return self


def test_a_dataset_is_a_table():
    found = rs.leaderboards.read_votes(Dataset())
    assert found.rankings.orders() == [["y", "x"]]
    with refuses("votes"):
        rs.leaderboards.read_votes({"train": Dataset(), "test": Dataset()})
