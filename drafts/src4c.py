from common import *
from rankshot.ranking.rankings import Rankings
from src4 import srcs
from src4b_ import accs,cells
from prototype import source_weights, fill_in
from dataclasses import replace
def equalise(r,mode):
    names=np.array([s or "" for s in r.sources],object); w=r.weights.copy()
    for s in set(names):
        m=names==s
        if mode=="total": w[m]/=w[m].sum()/len(set(r.targets[m]))
        if mode=="sqrt": w[m]/=np.sqrt(w[m].sum()/len(set(r.targets[m])))
    return replace(r,weights=w)
for ds in ("cifar","animals","intents"):
    for role in ("rehearsal","real"):
        t=task(ds,role); S=srcs(t); T=set(t["targets"]); full={k:r for k,r in S.items() if set(r.target_names)==T}
        alone={k:accs(t,r,cells) for k,r in full.items()}
        v=t["ls"]["v"]; z=(v-v.mean(0))/v.std(0); R=z.T@z/len(z)
        worst=[]
        P=[k for k in t["panels"]]
        for a in P:
            for b in P:
                if a!=b:
                    r=Rankings.concatenate([S[a],S[b]]); print(ds,role,a,"+",b," ".join("%s %+.3f"%(m,(accs(t,equalise(r,m),cells)-alone[a]).mean()) for m in ("","sqrt","total")))
        for use in (0,1):
            cost=[]
            for a in full:
                for b in S:
                    if a==b or {a,b}=={"random","random rater"}: continue
                    r=Rankings.concatenate([S[a],S[b]])
                    def mw(own):
                        h=fit_head(t,"ls",False,own); W=np.full((len(T),len(R)),np.nan); W[np.searchsorted(sorted(T),h.classes_)]=h.weights_; return W
                    w=source_weights(r,T,R if use else None,mw)
                    m=(accs(t,fill_in(equalise(r,"total"),w),cells)-alone[a]).mean(); cost.append((m,a,b,w))
            cost.sort(key=lambda x:x[0]); print(ds,role,"policy, coherence" if use else "policy","worst:",[("%+.3f"%m,a,b) for m,a,b,_ in cost[:7]],flush=True)
