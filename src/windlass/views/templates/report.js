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
