from common import *
def g(A,B):
    G=A@B.T
    return (G.toarray() if hasattr(G,"toarray") else np.asarray(G)).astype(np.float32)
for ds in ("cifar","animals","intents"):
    for role in ("rehearsal","real"):
        t=task(ds,role); rng=np.random.default_rng(1)
        L=np.array(sorted(t["targets"])); yp=np.searchsorted(L,t["yp"]); yt=np.searchsorted(L,t["yt"])
        keep=np.concatenate([rng.permutation(np.flatnonzero(yp==c))[:60] for c in range(len(L))])
        kt=np.concatenate([rng.permutation(np.flatnonzero(yt==c))[:200] for c in range(len(L))])
        P,T=t["Xp"][keep],t["Xt"][kt]
        out=dict(yp=yp[keep],yt=yt[kt],Gpp=g(P,P),Gtp=g(T,P),keep=keep,kt=kt)
        for cl in ("ls","mn"):
            for ref in (0,1):
                h=fit_head(t,cl,bool(ref))
                assert (h.classes_==L).all()
                for part,ix in (("p",keep),("t",kt)): out[f"h{part}_{cl}{ref}"]=np.asarray(h.predict_log_proba(scores(t,cl,part)))[ix]
            v=t[cl]["v"]; m,s=v.mean(0),v.std(0)
            out[f"Sp_{cl}"]=((t[cl]["p"]-m)/s)[keep]; out[f"St_{cl}"]=((t[cl]["t"]-m)/s)[kt]
        np.savez(f"/tmp/ev/g_{ds}_{role}.npz",**out); print(ds,role,[round(acc(out[f"ht_{c}{r}"].argmax(1),out["yt"]),3) for c in ("ls","mn") for r in (0,1)],flush=True)
