from common import *
from src4 import srcs
from dataclasses import replace
from rankshot.zeroshot.rehearsal import Rehearsal
import time
def one(sc,lab,hr,nr,ref,sc_new,y_new):
    hr=replace(hr,sources=np.full(len(hr),"s",object)); nr=replace(nr,sources=np.full(len(nr),"s",object))
    R=Rehearsal(rs.WeightedMean(),grid={}).fit(sc,lab,hr); p=R.predict_accuracy(nr,ref); h=R.fit_head(nr,ref); a=acc(h.predict(sc_new),y_new)
    return p.estimate,p.low,p.high,a
rows=[]
for ds in ("cifar","animals","intents"):
    t,u=task(ds,"rehearsal"),task(ds,"real"); S,U=srcs(t),srcs(u)
    for cl in ("ls","mn"):
        X=np.concatenate([t[cl]["t"],t[cl]["v"]]); y=np.concatenate([t["yt"],t["yv"]]); sc=Scores(X,t["items"],t[cl]["kind"])
        for k in S:
            if k.startswith("random") or k not in U or set(U[k].target_names)!=set(u["targets"]) or set(S[k].target_names)!=set(t["targets"]): continue
            try: rows.append((ds,cl,k,"real",*one(sc,y,S[k],U[k],scores(u,cl,"v"),scores(u,cl,"t"),u["yt"])))
            except Exception as e: print("x",ds,k,str(e)[:80]); continue
            print(*rows[-1][:4],*np.round(rows[-1][4:],3),flush=True)
            # split of the rehearsed classes: first half predicts the second half
            for rep in range(2):
                P=np.random.default_rng(rep).permutation(sorted(t["targets"])); A,B=P[:len(P)//2],P[len(P)//2:]
                m=np.isin(y,A)|np.isin(y,t["items"]); r=S[k]; ra=r[np.isin(r.targets.astype(str),A)]; rb=r[np.isin(r.targets.astype(str),B)]; q=np.isin(t["yt"],B)
                try: rows.append((ds,cl,k,"split",*one(sc[m],y[m],ra,rb,scores(t,cl,"v"),scores(t,cl,"t")[q],t["yt"][q])))
                except Exception as e: print("x",str(e)[:90]); continue
                print(*rows[-1][:4],*np.round(rows[-1][4:],3),flush=True)
pickle.dump(rows,open("/tmp/ev/cov6.pkl","wb"))
