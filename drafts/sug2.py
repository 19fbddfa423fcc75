from common import *
from prototype import fit_examples, center_kernel, row_standardize
from sklearn.cluster import KMeans
def nearest(Z,w,B,seed,done=None):
    km=KMeans(B,n_init=1,max_iter=20,random_state=seed).fit(Z,sample_weight=w); d=((Z-km.cluster_centers_[km.labels_])**2).sum(1); out=[]
    for c in range(B):
        m=np.flatnonzero(km.labels_==c)
        if len(m): out.append(m[d[m].argmin()])
    return np.array(out)
def pick(mode,h,Z,B,seed):
    rng=np.random.default_rng(seed); P=softmax(h,axis=1); s=np.sort(P,axis=1); margin=1-(s[:,-1]-s[:,-2])
    if mode=="random": return rng.choice(len(h),B,replace=False)
    if mode=="margin": return np.argsort(-margin)[:B]
    if mode=="kmeans": return nearest(Z,None,B,seed)
    if mode=="kmeans margin": return nearest(Z,margin,B,seed)
    if mode=="kmeans h": return nearest(np.concatenate([Z/np.sqrt(Z.shape[1]),np.sqrt(P)],axis=1),margin,B,seed)
    if mode=="kmeans proba": return nearest(np.sqrt(P),None,B,seed)
    if mode=="balanced":  # round robin over predicted classes, random inside
        o=rng.permutation(len(h)); pr=h[o].argmax(1); rank=np.zeros(len(h)); 
        for c in range(h.shape[1]): m=pr==c; rank[m]=np.arange(m.sum())
        return o[np.argsort(rank,kind="stable")[:B]]
MODES=("random","balanced","margin","kmeans","kmeans margin","kmeans h")
for ds in ("cifar","animals","intents"):
    for role in ("rehearsal","real"):
        g=dict(np.load(f"/tmp/ev/g_{ds}_{role}.npz")); yp,yt=g["yp"],g["yt"]; L=yp.max()+1
        hp,ht=g["hp_ls1"].astype(float),g["ht_ls1"].astype(float); Z=row_standardize(g["Sp_ls"].astype(float))
        for n in (1,2,5,10):
            out={}
            for mode in MODES:
                for rep in range(1 if mode=="margin" else 4):
                    e=pick(mode,hp,Z,n*L,rep); y=yp[e]; K,Kt=center_kernel(g["Gpp"][np.ix_(e,e)].astype(float),g["Gtp"][:,e].astype(float))
                    a,B,_,_=fit_examples(hp[e],y,K,(1.,)); out.setdefault(mode,[]).append((acc((a*ht+Kt@B).argmax(1),yt),len(np.unique(y))/L))
            print(ds,role,"n/class",n," ".join("%s %.3f±%.3f(%.2f)"%(m,np.mean([o[0] for o in v]),np.std([o[0] for o in v])/2,np.mean([o[1] for o in v])) for m,v in out.items()),flush=True)
