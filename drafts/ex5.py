from common import *
from ex2 import draw
from prototype import fit_examples, center_kernel
import prototype
from sklearn.linear_model import LogisticRegression
def krr_lr(K,Kt,y,L,C):
    v,U=np.linalg.eigh(K); u=v>1e-8*v[-1]; F=U[:,u]*np.sqrt(v[u]); Ft=Kt@U[:,u]/np.sqrt(v[u])
    m=LogisticRegression(C=C,max_iter=100).fit(F,y); z=np.full((len(Ft),L),-1e9)
    z[:,m.classes_]=m.decision_function(Ft) if L>2 else 0
    return z
def go(ds,role,cl,feat,ns,reps,ref=1,lr=True):
    g=dict(np.load(f"/tmp/ev/g_{ds}_{role}.npz")); yp,yt=g["yp"],g["yt"]; L=yp.max()+1
    hp,ht=g[f"hp_{cl}{ref}"].astype(float),g[f"ht_{cl}{ref}"].astype(float)
    P,T=g[f"Sp_{cl}"].astype(float),g[f"St_{cl}"].astype(float)
    G,Gt=(g["Gpp"].astype(float),g["Gtp"].astype(float)) if feat=="feat" else (P@P.T,T@P.T)
    print(role,ds,cl,feat,"ref",ref,"head %.3f"%acc(ht.argmax(1),yt),flush=True)
    for n in ns:
        out={}
        for rep in range(reps):
            e=draw(yp,n,L,np.random.default_rng(rep)); y=yp[e]; K,Kt=center_kernel(G[np.ix_(e,e)],Gt[:,e])
            for name,r in (("one",(1.,)),("auto",prototype.RIDGES)):
                a,B,lam,b=fit_examples(hp[e],y,K,r); z=a*ht+Kt@B
                out.setdefault(name,[]).append(acc(z.argmax(1),yt)); out.setdefault(name+"ab",[]).append((a,b,lam))
                p=softmax(z,axis=1); out.setdefault(name+"gap",[]).append(p.max(1).mean()-np.mean(z.argmax(1)==yt))
            if lr:
                for C in (1,10): out.setdefault(f"LR{C}",[]).append(acc(krr_lr(K,Kt,y,L,C).argmax(1),yt))
        print(f"  n={n:2}"," ".join(f"{k} {np.mean(v):.3f}±{np.std(v)/np.sqrt(len(v)):.3f}" for k,v in out.items() if not k.endswith(("ab","gap"))),"gap %.2f"%np.mean(out["autogap"]),np.round(np.mean(out["oneab"],0),2),np.round(np.mean(out["autoab"],0),2),flush=True)
if __name__=="__main__":
    for role in sys.argv[1].split(","):
        for ds in sys.argv[2].split(","):
            for cl in sys.argv[3].split(","):
                for feat in sys.argv[4].split(","): go(ds,role,cl,feat,(1,2,5,10,20),int(sys.argv[5]),lr="lr" in sys.argv)
