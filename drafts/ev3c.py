from common import *
from scipy.optimize import brentq
def nll(l,y): return -np.mean(log_softmax(l,axis=1)[np.arange(len(y)),y])
def std1(g): g=g-g.mean(1,keepdims=True); return g/g.std()
def match(h,g,share=.6):
    L=h.shape[1]; same=np.mean(h.argmax(1)==g.argmax(1)); q=np.exp(log_softmax(h,axis=1)).max(1).mean(); e=(1-q)/(L-1)
    qg=np.clip((same-e)/(q-e),1/L,.98)
    ex=lambda lc: softmax(np.exp(lc)*g,axis=1).max(1).mean()-qg
    c=0. if ex(-6.)>=0 else np.exp(brentq(ex,-6,6))
    return share*c,qg
for role in ("rehearsal","real"):
    t=task("intents",role); z=np.load(f"/tmp/ev/evid_{role}.npz"); y=z["y"]; rng=np.random.default_rng(0)
    for cl,ref in (("ls",0),("ls",1),("mn",0),("mn",1)):
        h=np.asarray(fit_head(t,cl,bool(ref)).predict_log_proba(scores(t,cl,"t")),float)
        for k in ("encoder","words"):
            for s in (0,.5,1,2,4,100):
                g0=std1(z[k]); g=std1(g0+s*rng.normal(size=g0.shape))
                b=np.exp(minimize(lambda u: nll(np.exp(u[0])*h+np.exp(u[1])*g,y),[0,0],method="Nelder-Mead").x)
                c,q=match(h,g); c1,_=match(h,g,1.); ch,_=match(h,g,.4)
                f=lambda c: acc((h+c*g).argmax(1),y)
                print(role,cl,ref,k,"noise",s,"head %.3f ev %.3f est %.3f"%(acc(h.argmax(1),y),acc(g.argmax(1),y),q),"| c=1 %.3f | match.4 %.3f .6 %.3f (c=%.2f) 1. %.3f | ML c/a=%.2f %.3f"%(f(1),f(ch),f(c),c,f(c1),b[1]/b[0],f(b[1]/b[0])),flush=True)
