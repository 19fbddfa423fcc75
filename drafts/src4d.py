from common import *
from rankshot.ranking.rankings import Rankings
from src4 import srcs
from src4b_ import accs,cells
from prototype import source_weights, fill_in
from dataclasses import replace
def byclass(t,r,c="ls",ref=True):
    h=fit_head(t,c,ref,r); p=h.classes_[np.asarray(h.decision_function(scores(t,c,"t"))).argmax(1)]
    return np.array([np.mean(p[t["yt"]==k]==k) for k in np.unique(t["yt"])])
def fit_weights(t,r,start,steps=(0.,.3,1.)):
    """Coordinate search: a change is kept only if its gain exceeds its standard error over the classes."""
    now=dict(start); best=byclass(t,fill_in(r,now)); tried=0
    while True:
        cand=[]
        for s in now:
            for w in steps:
                if w!=now[s]:
                    new={**now,s:w}
                    if not any(new.values()): continue
                    b=byclass(t,fill_in(r,new)); g=b-best; tried+=1
                    if g.mean()>g.std(ddof=1)/np.sqrt(len(g)): cand.append((b.mean(),new,b))
        if not cand: return now,best.mean(),tried
        _,now,best=max(cand,key=lambda x:x[0])
for ds in ("cifar","animals","intents"):
    t=task(ds,"rehearsal"); u=task(ds,"real"); S,U=srcs(t),srcs(u)
    v=t["ls"]["v"]; z=(v-v.mean(0))/v.std(0); R=z.T@z/len(z)
    sets={"all":list(S),"all but random rater":[k for k in S if k!="random rater"]}
    if len(t["panels"])>1: sets["photographs+similar"]=["photographs","similar"]
    sets["tables"]=[k for k in S if k in t["sources"]]
    for nm,ks in sets.items():
        ks=[k for k in ks if k in U]
        def rn(k,q): return replace(q,sources=np.full(len(q),k,object))
        r=Rankings.concatenate([rn(k,S[k]) for k in ks]); q=Rankings.concatenate([rn(k,U[k]) for k in ks])
        T=sorted(t["targets"])
        def mw(own):
            h=fit_head(t,"ls",False,own); W=np.full((len(T),len(R)),np.nan); W[np.searchsorted(T,h.classes_)]=h.weights_; return W
        w0=source_weights(r,T,R,mw); w,a,n=fit_weights(t,r,w0)
        eq={k:1. for k in ks}
        print(ds,nm,"start",{k:v for k,v in w0.items() if v},"fitted",{k:v for k,v in w.items() if v},"tried",n,"| rehearsal equal %.3f default %.3f fitted %.3f"%(byclass(t,r).mean(),byclass(t,fill_in(r,w0)).mean(),a),"| real equal %.3f default %.3f fitted %.3f"%(byclass(u,q).mean(),byclass(u,fill_in(q,w0)).mean(),byclass(u,fill_in(q,w)).mean()),flush=True)
