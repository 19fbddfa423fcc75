from common import *
import json
rows=[json.loads(l) for l in open("/work/shared/data/intents/requests.jsonl")]
z=np.load("/work/shared/data/intents/encoder_cosines.npz"); pos={r:i for i,r in enumerate(z["row"])}; names=list(z["names"].astype(str))
def enc(ix,targets): return z["cosine"][[pos[i] for i in ix]][:,[names.index(c) for c in targets]].astype(float)
from reproduction.benchmark import make_tfidf
from reproduction.text_peers import spell_names
def nll(l,y): return -np.mean(log_softmax(l,axis=1)[np.arange(len(y)),y])
rc=lambda g: g-g.mean(1,keepdims=True)
def variants(g,gv):
    yield "row-centred, one scale of batch",rc(g)/rc(g).std()
    yield "row-centred, one scale of reference",rc(g)/rc(gv).std()
    yield "row std",rc(g)/rc(g).std(1,keepdims=True).clip(1e-9)
    m,s=gv.mean(0),gv.std(0); c=g-m; yield "column-centred by ref",rc(c)/rc(gv-m).std()
    c=(g-m)/s; yield "column-std by ref",rc(c)/rc((gv-m)/s).std()
for role in ("rehearsal","real"):
    t=task("intents",role); T=np.array(sorted(t["targets"])); y=np.searchsorted(T,t["yt"])
    nm=spell_names(T); tf=make_tfidf().fit([*t["train_text"],*nm]); N=tf.transform(nm).T
    w=lambda ix:(tf.transform([rows[i]["text"] for i in ix])@N).toarray()
    ix,vx=t["test_row"],t["val_row"]
    E={"encoder":(enc(ix,T),enc(vx,T)),"words":(w(ix),w(vx))}
    for cl,ref in (("ls",0),("ls",1),("mn",1)):
        hd=fit_head(t,cl,bool(ref)); h=np.asarray(hd.predict_log_proba(scores(t,cl,"t")),float)
        keep={}
        for k,(g,gv) in E.items():
            for v,x in variants(g,gv):
                keep[k,v]=x
                b=minimize(lambda u: nll(np.exp(u[0])*h+np.exp(u[1])*x,y),[0,0],method="Nelder-Mead").x
                print(role,cl,ref,k,"%-36s"%v,"alone %.3f"%acc(x.argmax(1),y),"ML",np.round(np.exp(b),2)," ".join("%s:%.3f"%(c,acc((h+c*x).argmax(1),y)) for c in (.25,.5,.75,1,1.5,2)),flush=True)
        for v in ("row-centred, one scale of reference","row std"):
            print(role,cl,ref,"BOTH",v," ".join("%s:%.3f"%(c,acc((h+c*keep["encoder",v]+c*keep["words",v]).argmax(1),y)) for c in (.25,.5,.75,1,1.5)))
        if role=="real":
            P=t["pool_row"]; h2=np.asarray(hd.predict_log_proba(scores(t,cl,"p")),float); y2=np.searchsorted(T,t["yp"])
            g=enc(P,T); x=rc(g)/rc(g).std(); print("   all pool rows: head %.3f enc %.3f both %.3f"%(acc(h2.argmax(1),y2),acc(x.argmax(1),y2),acc((h2+x).argmax(1),y2)))
