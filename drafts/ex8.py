from common import *
import prototype
from prototype import fit_examples, center_kernel
from ex2 import draw
def run(hp,ht,yp,yt,G,Gt,e,L,sd,grow):
    y=yp[e]; K,Kt=center_kernel(G[np.ix_(e,e)],Gt[:,e]); pr=prototype.PRIOR+np.array([0,grow*np.log(len(e)/L)]); a,B,_,b=fit_examples(hp[e],y,K,(1.,),prior=pr,prior_std=sd); f=Kt@B
    there=np.isin(np.arange(L),y)
    if (~there).any(): f[:,~there]=(logsumexp(f[:,there],axis=1)-np.log(there.sum()))[:,None]
    return acc((a*ht+f).argmax(1),yt)
SD={"tight g0":(np.array([.25,.5]),0),"tight g.5":(np.array([.25,.5]),.5),"mid g.5":(np.array([.3,.7]),.5)}
for role in ("rehearsal","real"):
    for ds in ("cifar","animals","intents"):
        g=dict(np.load(f"/tmp/ev/g_{ds}_{role}.npz")); yp,yt=g["yp"],g["yt"]; L=yp.max()+1
        hp,ht=g["hp_ls1"].astype(float),g["ht_ls1"].astype(float); G,Gt=g["Gpp"].astype(float),g["Gtp"].astype(float)
        print(ds,role,"head %.3f"%acc(ht.argmax(1),yt),end=" ")
        for kind,ns in (("random",(1,2)),("equal",(2,5,10,20))):
            for n in ns:
                es=[np.random.default_rng(r).choice(len(yp),n*L,replace=False) if kind=="random" else draw(yp,n,L,np.random.default_rng(r)) for r in range(3)]
                print("|",kind,n," ".join("%.3f"%np.mean([run(hp,ht,yp,yt,G,Gt,e,L,*c) for e in es]) for c in SD.values()),end=" ")
        print(flush=True)
