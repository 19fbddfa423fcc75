from common import *
from gz5d import hm
from gz5f_ import ref3
from prototype import row_standardize
from rankshot.datasets import load_imagenet
from rankshot.zeroshot.heads.seen_and_new import SeenAndNew
G=np.array([1.1,-1.7,-1.0])
def simpson(V):
    n=np.bincount(V.argmax(1),minlength=V.shape[1]); N=n.sum(); same=(n*(n-1)).sum()/(N*(N-1)); return min(1.,1/(V.shape[1]*same)) if same>0 else 1.
def evalH(h0,g0,X,n,V,y,items,kind,mode_k=10.):
    """X: new rows then seen rows (values)"""
    gam=.5 if kind=="multiclass" else 0.
    W=h0.weights_; m,s,B=ref3(V,W,mode_k,gam,gam,gam); m2,s2,_=ref3(V,W,mode_k,0,0,0)
    f,fV=row_standardize(X),row_standardize(V); v,vV=((f-m)/s)@B.T,((fV-m)/s)@B.T
    tm,ts=vV.mean(0),vV.std(0); F=np.column_stack([((v-tm)/ts).max(1),((f-m2)/s2).max(1)]); FV=np.column_stack([((vV-tm)/ts).max(1),((fV-m2)/s2).max(1)])
    F=(F-FV.mean(0))/FV.std(0); l1=F@G[:2]+G[2]
    p=g0.gate_proba(Scores(X.astype(np.float32),tuple(items),kind)); l0=np.log(p[:,1]/p[:,0])
    kap=simpson(V); Ts={"multiclass":.45,"one-vs-rest":.75}[kind]; ls=log_softmax(f/Ts,axis=1)
    abar=np.maximum(np.bincount(V.argmax(1),minlength=V.shape[1])/(np.bincount(V.argmax(1),minlength=V.shape[1])+10),gam).mean()
    nl=log_softmax(v/(.9**(1-abar)*.5**abar),axis=1); out=[]
    for l in (l0,l1,kap**2*l1+(1-kap**2)*l0,np.where(kap>.6,l1,l0)):
        isnew=nl.max(1)+l>ls.max(1); pred=np.where(isnew,h0.classes_[nl.argmax(1)],np.array(items)[ls.argmax(1)])
        ac=[np.mean(pred[y==c]==c) for c in np.unique(y)]; a=np.mean([np.mean(pred[:n][y[:n]==c]==c) for c in np.unique(y[:n])]); b=np.mean([np.mean(pred[n:][y[n:]==c]==c) for c in np.unique(y[n:])]); out.append(hm(a,b))
    return out+[kap]
d=load_imagenet(); h0=rs.WeightedMean().fit(d.rankings); g0=SeenAndNew(h0).fit(); rng=np.random.default_rng(0); r=[]
for rep in range(6):
    cl=np.unique(d.reference_labels); c=rng.permutation(cl)[:12]; m=np.isin(d.reference_labels,c)
    R=d.reference.values.astype(float); X=np.concatenate([d.scores.values.astype(float),R[~m]]); y=np.concatenate([d.labels,d.reference_labels[~m]])
    both=SeenAndNew(rs.WeightedMean().fit(d.rankings,Scores(R[m].astype(np.float32),d.reference.items,"multiclass"))).fit(Scores(R[m].astype(np.float32),d.reference.items,"multiclass"))
    def HH(b): 
        q=b.predict(Scores(X.astype(np.float32),d.reference.items,"multiclass")); n=len(d.labels); return hm(np.mean([np.mean(q[:n][y[:n]==c]==c) for c in np.unique(y[:n])]),np.mean([np.mean(q[n:][y[n:]==c]==c) for c in np.unique(y[n:])]))
    r.append([HH(g0),HH(both)]+evalH(h0,g0,X,len(d.labels),R[m],y,d.reference.items,"multiclass"))
print("mini, reference 12 classes, tested on the 12 others: none, current, gate0, gate1, blend, switch, kappa",np.round(np.mean(r,0),3))
for ds in ("cifar","animals","intents"):
    for role in ("rehearsal","real"):
        t=task(ds,role); items=np.array(t["items"])
        for cl in ("ls","mn"):
            h0=fit_head(t,cl,False); g0=SeenAndNew(h0).fit(); X=np.concatenate([t[cl]["t"],t[cl]["s"]]).astype(float); y=np.concatenate([t["yt"],t["ys"]]); line=[]
            for share in (.05,.1,.25,.5,1.):
                res=[]
                for rep in range(2 if share<1 else 1):
                    rng=np.random.default_rng(rep); cov=rng.choice(items,max(2,int(round(share*len(items)))),replace=False); m=np.isin(t["yv"],cov)
                    res.append(evalH(h0,g0,X,len(t["yt"]),t[cl]["v"][m].astype(float),y,items,t[cl]["kind"]))
                line.append("%.2f: "%share+" ".join("%.3f"%x for x in np.mean(res,0)))
            p=g0.predict(Scores(X.astype(np.float32),t["items"],t[cl]["kind"])); n=len(t["yt"]); b=hm(acc(p[:n],y[:n]),acc(p[n:],y[n:]))
            print(ds,role,cl,"none %.3f |"%b," | ".join(line),flush=True)
