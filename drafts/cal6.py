from common import *
from gz5f import ref3
from prototype import row_standardize
from rankshot.datasets import load_imagenet
from rankshot.zeroshot.metrics import expected_calibration_error as ece
def topt(v,y):
    r=minimize(lambda l:-np.mean(log_softmax(v*np.exp(-l[0]),axis=1)[np.arange(len(y)),y]),[0.],method="Nelder-Mead"); return np.exp(r.x[0])
def row(name,v,vV,y,classes,T):
    lab=classes[y]; E=lambda T: ece(lab,softmax(v/T,axis=1),classes); To=topt(v,y); s=(v-v.mean(1,keepdims=True)).std(); g=np.sort(v,axis=1); gap=np.mean(g[:,-1]-g[:,-2])
    print("%-22s"%name,"L",v.shape[1],"Topt %.2f ECE opt %.3f | T %.2f ECE %.3f"%(To,E(To),T,E(T)),"| row std %.2f top gap %.2f Topt/std %.2f"%(s,gap,To/s),"" if vV is None else "ref row std %.2f ratio %.2f"%((vV-vV.mean(1,keepdims=True)).std(),To/(vV-vV.mean(1,keepdims=True)).std()),flush=True)
d=load_imagenet(); sets=[("mini mn",d.scores.values.astype(float),d.labels,d.reference.values.astype(float),rs.WeightedMean().fit(d.rankings),"multiclass")]
for ds in ("cifar","animals","intents"):
    for role in ("rehearsal","real"):
        t=task(ds,role)
        for cl in ("ls","mn"): sets.append((f"{ds} {role} {cl}",t[cl]["t"].astype(float),t["yt"],t[cl]["v"].astype(float),fit_head(t,cl,False),t[cl]["kind"]))
for nm,X,y,V,h,kind in sets:
    yy=np.searchsorted(h.classes_,y); W=h.weights_; f,fV=row_standardize(X),row_standardize(V)
    row(nm+" none",f@W.T,fV@W.T,yy,h.classes_,.9)
    g=.5 if kind=="multiclass" else 0.; m,s,B=ref3(V,W,10,g,g,g); n=np.bincount(V.argmax(1),minlength=V.shape[1]); ab=np.maximum(n/(n+10),g).mean()
    row(nm+" ref",((f-m)/s)@B.T,((fV-m)/s)@B.T,yy,h.classes_,.9**(1-ab)*.5**ab)
