import sys, pickle, warnings
import numpy as np
warnings.filterwarnings("ignore")
sys.path[:0]=["/tmp/wt/evidence/src","/tmp/wt/evidence","/tmp/ev"]
import rankshot as rs
from scipy.special import log_softmax, softmax, logsumexp
from scipy.optimize import minimize
from rankshot.zeroshot.scores import Scores
def task(ds,role): return pickle.load(open(f"/tmp/ev/{ds}_{role}.pkl","rb"))
def scores(t,cl,part): return Scores(t[cl][part],t["items"],t[cl]["kind"])
MAIN={"cifar":"photographs","animals":"photographs","intents":"requests"}
def fit_head(t,cl,reference=True,rankings=None,**kw):
    r=t["panels"][MAIN[t["ds"]]] if rankings is None else rankings
    return rs.WeightedMean(**kw).fit(r,scores(t,cl,"v") if reference else None)
def acc(pred,y):  # mean class accuracy
    return np.mean([np.mean(pred[y==c]==c) for c in np.unique(y)])
