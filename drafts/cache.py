"""Cache scores, features, labels for each dataset x task x classifier."""
import sys, json, pickle, time, warnings
from pathlib import Path
import numpy as np
warnings.filterwarnings("ignore")
sys.path[:0]=["/tmp/wt/evidence/src","/tmp/wt/evidence"]
import rankshot as rs
from rankshot.datasets import load_cifar
from reproduction.data import load_data
from reproduction.benchmark import load_benchmark, make_tfidf
from reproduction.classifiers import train_classifier
from dataclasses import replace
D=Path("/work/shared/data")
def save(name,obj):
    pickle.dump(obj,open(f"/tmp/ev/{name}.pkl","wb"),protocol=5)
C={"cifar":{"ls":("least squares",.001),"mn":("multiclass",.01)},"animals":{"ls":("least squares",.0003),"mn":("multiclass",.003)},"intents":{"ls":("least squares",1.),"mn":("multiclass",10.)}}
def do(ds):
    data = load_cifar() if ds=="cifar" else load_data(ds,D)
    bench = load_benchmark(data)
    for role in ("real","rehearsal"):
        task = getattr(bench,role)
        out=dict(ds=ds,role=role,items=task.items,targets=task.targets,panels=task.panels,sources=task.sources)
        if ds=="intents":
            rows=[json.loads(l) for l in open(D/"intents/requests.jsonl")]
            tfidf=make_tfidf().fit(task.train_text)
            def get(classes,splits):
                idx=[i for i,r in enumerate(rows) if r["intent"] in classes and r["split"] in splits]
                return np.array(idx),tfidf.transform([rows[i]["text"] for i in idx]),np.array([rows[i]["intent"] for i in idx])
            T=set(task.targets)
            i,Xp,yp=get(T,("train","val")); out["pool_row"]=i
            j,Xt,yt=get(T,("test",)); out["test_row"]=j
            S=set(task.items)
            k,Xv,yv=get(S,("val",)); out["val_row"]=k
            l,Xs,ys=get(S,("test",)); out["seen_row"]=l
            out["tfidf"]=tfidf; out["train_text"]=task.train_text
        else:
            rng=np.random.default_rng(0)
            X,y=np.asarray(task.test),task.test_label
            p=rng.permutation(len(y)); half=len(y)//2
            # pool = first half, test = second half; same classes
            Xp,yp,Xt,yt=X[p[:half]],y[p[:half]],X[p[half:]],y[p[half:]]
            v=rng.permutation(len(task.validation_label)); h=len(v)//2
            Xv,yv=task.validation[v[:h]],task.validation_label[v[:h]]
            Xs,ys=task.validation[v[h:]],task.validation_label[v[h:]]
            if ds=="animals" and role=="rehearsal":
                pass
        out.update(Xp=Xp,yp=yp,Xt=Xt,yt=yt,Xv=Xv,yv=yv,Xs=Xs,ys=ys)
        for cl,(setting,c) in C[ds].items():
            t=time.time(); m=train_classifier(setting,c,task.train,task.train_label)
            assert m.classes==tuple(task.items)
            out[cl]={k:np.asarray(m.scores(out["X"+k]).values,np.float32) for k in "ptvs"}
            out[cl]["kind"]=m.kind
            print(ds,role,cl,"%.1fs"%(time.time()-t),"seen acc",np.mean(np.array(m.classes)[out[cl]["s"].argmax(1)]==ys),flush=True)
            save(f"{ds}_{role}",out)
for ds in sys.argv[1:]: do(ds)
