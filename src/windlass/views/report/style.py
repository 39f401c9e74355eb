"""How the page looks, light, dark and on paper, and the few lines of script that it can do without.

Colours are named once, by what they mean. Every pair of text and ground has a contrast of 4.5 : 1.
"""

STYLE = """
:root{color-scheme:light dark;
--ground:#fff;--raised:#f6f7f9;--line:#d9dee5;--text:#1c2128;--dim:#59636f;--link:#0b5cbe;
--good:#167339;--good-bg:#e2f4e7;--warn:#8a5a00;--warn-bg:#fdf2d8;--bad:#b42323;--bad-bg:#fdeaea;
--you:#7438b8;--you-bg:#f3eafc;--work:#0b5cbe;--work-bg:#e4effc;--none:#59636f;--none-bg:#eceff3;
--player:#4c8fe0;--checks:#3aa6a0;--coach:#9a7be0;--merge:#4caf6d;--queue:#a9b2bd;
--wait:#d99a1c;--person:#b04fc4}
@media(prefers-color-scheme:dark){:root{
--ground:#0f1317;--raised:#171c22;--line:#2c343d;--text:#dfe5ec;--dim:#96a1ae;--link:#7ab5ff;
--good:#62cb85;--good-bg:#12301d;--warn:#e5b14c;--warn-bg:#352a10;--bad:#ff8a83;--bad-bg:#3b1a1b;
--you:#c79bf2;--you-bg:#2d1d3d;--work:#7ab5ff;--work-bg:#14283f;--none:#96a1ae;--none-bg:#232a32;
--player:#4583cf;--checks:#2f918c;--coach:#8468c9;--merge:#3f985c;--queue:#596470;
--wait:#bf8a22;--person:#a04bb3}}
*{box-sizing:border-box}
html{scroll-padding-top:3.2rem;-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:72rem;padding:0 1.25rem 3rem;background:var(--ground);
color:var(--text);font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",
"Noto Sans","Liberation Sans",Arial,sans-serif;overflow-wrap:anywhere;
font-variant-numeric:tabular-nums}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
:focus-visible{outline:2px solid var(--link);outline-offset:2px;border-radius:3px}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",
"Liberation Mono",monospace;font-size:12.5px}
pre{margin:.4rem 0;padding:.6rem .75rem;background:var(--raised);border:1px solid var(--line);
border-radius:6px;white-space:pre-wrap;max-height:24rem;overflow:auto}
bdi,.said{unicode-bidi:isolate}.said{white-space:pre-wrap}
h1{font-size:1.6rem;line-height:1.25;margin:.1rem 0 .7rem;font-weight:650}
h1 .pill{font-size:.8rem;vertical-align:.3em}
h2{font-size:1.05rem;margin:0 0 .6rem;font-weight:650}
h4{font-size:.8rem;margin:.8rem 0 .25rem;font-weight:600;color:var(--dim)}
p{margin:.3rem 0}ul,ol{margin:0;padding:0;list-style:none}dl,dd{margin:0}
.dim{color:var(--dim)}.num{text-align:right;white-space:nowrap}
.plus{color:var(--good);fill:var(--good)}.minus{color:var(--bad);fill:var(--bad)}
.stat{white-space:nowrap}
header{padding:1.5rem 0 .25rem}.over{font-size:.85rem;color:var(--dim);margin:0}
.over .dim{white-space:pre}.why{margin:-.3rem 0 .7rem;color:var(--dim)}
.pill{display:inline-block;padding:0 .5em;border-radius:1em;font-size:.75rem;font-weight:600;
line-height:1.6;white-space:nowrap}
.pill.good{color:var(--good);background:var(--good-bg)}
.pill.warn{color:var(--warn);background:var(--warn-bg)}
.pill.bad{color:var(--bad);background:var(--bad-bg)}
.pill.you{color:var(--you);background:var(--you-bg)}
.pill.work{color:var(--work);background:var(--work-bg)}
.pill.none{color:var(--none);background:var(--none-bg)}
.sign{display:inline-block;width:1.3em;font-weight:700;flex:none}
.sign.good{color:var(--good)}.sign.warn{color:var(--warn)}.sign.bad{color:var(--bad)}
.sign.you{color:var(--you)}.sign.work{color:var(--work)}.sign.none{color:var(--none)}
svg{display:block}svg.done,svg.track,svg.bar{width:100%}
.done{border-radius:5px;overflow:hidden;background:var(--none-bg)}
.t-good{fill:var(--merge);background:var(--merge)}.t-work{fill:var(--player);background:var(--player)}
.t-none{fill:var(--queue);background:var(--queue)}.t-warn{fill:var(--wait);background:var(--wait)}
.t-bad{fill:var(--bad);background:var(--bad)}.t-you{fill:var(--person);background:var(--person)}
.legend{display:flex;flex-wrap:wrap;gap:.15rem 1rem;margin:.5rem 0;font-size:.85rem}
.key{display:inline-block;width:.75em;height:.75em;border-radius:2px;margin-right:.4em}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(11.5rem,1fr));gap:1px;
margin:.8rem 0;background:var(--raised);border:1px solid var(--line);border-radius:8px;
overflow:hidden}
.tiles>div{background:var(--raised);padding:.55rem .8rem;box-shadow:0 0 0 1px var(--line)}
dt{font-size:.75rem;color:var(--dim);font-weight:600}
.tiles dd{display:flex;flex-direction:column}
.big{font-size:1.25rem;font-weight:650;line-height:1.35}
.tiles dd .dim{font-size:.8rem}
.facts{display:grid;grid-template-columns:auto 1fr;gap:.3rem 1rem}
.facts dt{padding-top:.15rem}.facts dd{display:flex;flex-direction:column;gap:.2rem}
.command{display:flex;flex-wrap:wrap;align-items:center;gap:.2rem .5rem}
.command code{background:var(--raised);border:1px solid var(--line);border-radius:5px;
padding:.05rem .4rem}
button{font:inherit;font-size:.75rem;color:var(--text);background:var(--raised);cursor:pointer;
border:1px solid var(--line);border-radius:5px;padding:.05rem .5rem}
button:hover{border-color:var(--dim)}
.needs{border:1px solid var(--you);border-left-width:4px;border-radius:8px;padding:.8rem 1rem;
margin:1rem 0}
.needs li+li{margin-top:.7rem;padding-top:.7rem;border-top:1px solid var(--line)}
.needs li{display:flex;flex-direction:column;gap:.2rem}
nav{position:sticky;top:0;z-index:1;display:flex;gap:1.2rem;padding:.6rem 0;margin-top:.8rem;
background:var(--ground);border-bottom:1px solid var(--line);font-weight:600;font-size:.85rem}
section{margin:1.5rem 0}
.lane{display:grid;grid-template-columns:minmax(9rem,17rem) 1fr;gap:0 .8rem;align-items:center;
padding:2px 0;border-bottom:1px solid var(--line)}
.lane:last-child{border-bottom:0}
.lane-name{white-space:nowrap;overflow:hidden;text-overflow:ellipsis;color:var(--text);
font-size:.85rem}
.lanes.small .lane{padding:0}.lanes.small .lane-name{font-size:.72rem;line-height:1.3}
.lanes.small{max-height:46rem;overflow-y:auto;border:1px solid var(--line);border-radius:8px;
padding:.3rem .6rem}
.track text{font-size:11px;fill:var(--dim)}
.k-player{fill:var(--player);background:var(--player)}
.k-checks{fill:var(--checks);background:var(--checks)}
.k-coach{fill:var(--coach);background:var(--coach)}
.k-merge{fill:var(--merge);background:var(--merge)}
.k-queue{fill:var(--queue);background:var(--queue)}
.k-wait{fill:var(--wait);background:var(--wait)}
.k-person{fill:var(--person);background:var(--person)}
rect.lost{stroke:var(--bad);stroke-width:2px}.k-lost{border:2px solid var(--bad)}
.gap{fill:var(--none-bg)}.track a:hover rect{opacity:.8}
.graph{overflow:auto;max-height:48rem;border:1px solid var(--line);border-radius:8px;
padding:.75rem}
.graph svg{margin:0 auto}
.wire{fill:none;stroke:var(--queue);stroke-width:1}
.wire.main{stroke:var(--work);stroke-width:2.5}
.point{fill:var(--dim)}.barrier{stroke:var(--line);stroke-dasharray:4 4}
.stage{font-size:11px;fill:var(--dim);font-weight:600}
.node rect{fill:var(--raised);stroke:var(--line)}.node .edge{stroke:none}
.node.main rect:first-of-type{stroke:var(--work);stroke-width:2}
.node:hover rect:first-of-type{stroke:var(--link)}
.node.good .edge{fill:var(--merge)}.node.work .edge{fill:var(--player)}
.node.warn .edge{fill:var(--wait)}.node.bad .edge{fill:var(--bad)}
.node.you .edge{fill:var(--person)}.node.none .edge{fill:var(--queue)}
.node .id{font-size:12px;font-weight:650;fill:var(--text)}
.node .title{font-size:11px;fill:var(--dim)}
.costs{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,28rem),1fr));
gap:1rem 2rem;align-items:start}
.cost{border-collapse:collapse;width:100%;font-size:.85rem}.by-task{grid-row:span 2}
.cost th{text-align:right;font-size:.75rem;color:var(--dim);font-weight:600;
padding:.2rem 0 .2rem .7rem;white-space:nowrap}
.cost th:first-child{text-align:left;padding-left:0}
.cost td{border-top:1px solid var(--line);padding:.25rem 0 .25rem .7rem;vertical-align:top}
.cost td:first-child{padding-left:0;width:100%}
.cost .bar rect{fill:var(--player)}.cost svg.bar{margin-top:2px}
.task{border:1px solid var(--line);border-radius:8px;margin:.5rem 0}
summary{cursor:pointer;display:flex;flex-wrap:wrap;gap:.15rem .6rem;align-items:baseline;
list-style:none;padding:.45rem .8rem}
summary::-webkit-details-marker{display:none}
summary::before{content:"▸";color:var(--dim);flex:none;width:.8em}
details[open]>summary::before{content:"▾"}
.grow{flex:1 1 14rem}
.figures{display:flex;flex-wrap:wrap;gap:0 .9rem;color:var(--dim);font-size:.85rem}
.task>.body{padding:.1rem 1rem .8rem 2rem;border-top:1px solid var(--line)}
.turn{margin-top:.5rem;border:1px solid var(--line);border-radius:6px}
.turn>summary{background:var(--raised);border-radius:6px;padding:.3rem .7rem}
.turn>.body{padding:.1rem .9rem .8rem}
.turn:target,.task:target{border-color:var(--link)}
.criteria li{display:grid;grid-template-columns:1.5rem 1fr;padding:.15rem 0}
.evidence{grid-column:2;color:var(--dim);font-size:.9em}
.checks li{display:flex;flex-wrap:wrap;gap:.15rem .6rem;align-items:baseline;padding:.15rem 0}
.checks pre{flex-basis:100%}
.files li{display:grid;grid-template-columns:1fr auto 6rem;gap:.8rem;align-items:center;
max-width:44rem}
.issues li{display:grid;grid-template-columns:6.5rem 1fr;gap:.5rem;padding:.2rem 0}
.issues .pill{justify-self:start;align-self:start;margin-top:.15rem}
.callout{border-left:3px solid var(--none);background:var(--none-bg);padding:.4rem .7rem;
border-radius:4px;margin:.5rem 0}
.callout.warn{border-color:var(--warn);background:var(--warn-bg)}
.callout.bad{border-color:var(--bad);background:var(--bad-bg)}
.callout.you{border-color:var(--you);background:var(--you-bg)}
.prompt{margin-top:.7rem}.prompt>summary{padding:.2rem 0}
.look{margin-top:1rem}
footer{margin-top:2rem;padding-top:.8rem;border-top:1px solid var(--line);color:var(--dim);
font-size:.8rem}
@media(max-width:42rem){body{padding:0 .8rem 2rem}h1{font-size:1.35rem}
.tiles{grid-template-columns:1fr 1fr}
.tiles>div:last-child:nth-child(odd){grid-column:span 2}
.lane{grid-template-columns:1fr;padding:.3rem 0}
.task>.body{padding:.1rem .8rem .7rem}.files li{grid-template-columns:1fr auto}
.files .bar{display:none}.facts{grid-template-columns:1fr;gap:.1rem}
.facts dd{margin-bottom:.4rem}.issues li{grid-template-columns:1fr}
.grow{flex-basis:70%}}
@media print{:root{color-scheme:light}body{max-width:none;font-size:11px;padding:0}
nav,button{display:none}.graph,.lanes.small,pre{max-height:none;overflow:visible}
.graph svg{max-width:100%;height:auto}details::details-content{content-visibility:visible}
.task,.turn,.lane,tr,li{break-inside:avoid}
svg,.key,.pill{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
""".strip()

SCRIPT = """
(function(){
function reveal(){
  var at=document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for(var e=at;e;e=e.parentElement)if(e.tagName==="DETAILS")e.open=true;
  if(at)at.scrollIntoView();
}
function select(node){
  var range=document.createRange();range.selectNodeContents(node);
  var chosen=getSelection();chosen.removeAllRanges();chosen.addRange(range);
}
document.querySelectorAll("button[data-copy]").forEach(function(button){
  button.hidden=false;
  var word=button.textContent;
  button.addEventListener("click",function(event){
    event.preventDefault();
    var node=document.getElementById(button.dataset.copy);
    function said(text){
      button.textContent=text;setTimeout(function(){button.textContent=word},1500)}
    function byHand(){select(node);said(document.execCommand("copy")?"Copied":"Selected")}
    if(navigator.clipboard)
      navigator.clipboard.writeText(node.textContent).then(function(){said("Copied")},byHand);
    else byHand();
  });
});
addEventListener("hashchange",reveal);
addEventListener("beforeprint",function(){
  document.querySelectorAll("details").forEach(function(e){e.open=true});
});
if(location.hash)reveal();
})();
""".strip()
