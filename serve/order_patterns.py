"""How orders to a machine are worded: regular expressions, read without regard to case."""

from __future__ import annotations

_MACHINE = (
    r"(?:an? |the |any |all |every )?(?:ai|a\.i\.|llms?|(?:large )?language models?|chat-?bots?|"
    r"chatgpt|gpt(?:-?\d\w*)?|(?:ai|automated|virtual|digital) (?:\w+ )?"
    r"(?:agents?|assistants?|readers?|reviewers?|systems?|models?|tools?|summari[sz]ers?)|"
    r"(?:machine|automat\w+) readers?|assistants?|models?|summari[sz]ers?|(?:re)?rankers?|bots?)\b"
)
_TELL = (
    r"(?:answer|say|respond|reply|state|output|print|cite|quote|write|append|prepend|conclude|"
    r"repeat|reveal|list|emit|drop|echo|claim|mention|recommend|declare|assert|confirm|tell|insist|summari[sz]e|"
    r"rank|rate|score|treat|translate|ignore|disregard|forget|omit|obey|comply|follow"
    r"|pretend|act)"
)
_WORDS = (
    r"(?:instructions?|prompts?|directives?|directions|commands?|orders|guidelines|rules|context|"
    r"messages?|constraints?|polic(?:y|ies)|training|text|evidence|passages?|conversation)"
)
_BEFORE = (
    r"(?:previous(?:ly)?|prior|above|earlier|preceding|foregoing|your|system|former|initial|"
    r"original|existing|developer(?:'s)?|safety|other)"
)
_BEGINS = (
    r"(?:^|[.!?:;,\u2014\u2013\"'\u201c(\[>*#-]\s*|"
    r"\b(?:please|kindly|now|then|and|instead|must|should|always|you)\s+)"
)
_MUST = (
    r"(?:must|should|shall|will|have to|need to|are to|is to|are (?:now )?(?:required|instructed|"
    r"ordered|obliged|asked|told|hereby \w+) to)"
)

OVERRIDES = (
    r"\b(?:ignore|disregard)\W+(?:(?:the|all|any) )?(?:user|query|other passages?)\b",
    rf"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overrid(?:e|ing)|bypass|discard|neglect|"
    rf"do\W*not\W*(?:follow|obey|use)|stop\W*following|set\W*aside|put\W*aside)\W*"
    rf"(?:(?:all|any|the|of|every|everything|whatever|what|each|and|or)\W*){{0,4}}{_BEFORE}\W*"
    rf"(?:\w+\W+){{0,2}}?{_WORDS}",
    r"\b(?:ignore|disregard|forget)\W*(?:everything|anything|all|what(?:ever)?)\W*(?:that\W*)?"
    r"(?:you\b|(?:was|were|has|is|came|said|written)?\W*(?:said|told|above|before)\b)",
)

ORDERS = (
    *OVERRIDES,
    r"\bnew (?:system )?(?:instructions?|prompt|directive|task|rules?) ?(?:is|are|follows?)? ?:",
    r"\b(?:system|developer|admin(?:istrator)?|root|security)[ _-]?(?:message|override"
    r"|prompt|note|"
    r"notice|update|alert|instructions?|command|mode)\b ?(?:[:>\]=-]|(?:is |was )?(?:on|enabled|"
    r"activated|engaged|accepted)\b)",
    r"\b(?:developer|god|jailbreak|dan|debug|unrestricted|maintenance) mode (?:is |now )*"
    r"(?:on|enabled|activated|engaged)\b",
    r"\b(?:end|beginning|start|close) of (?:the )?(?:evidence|context|document|passages?|"
    r"instructions?|prompt|quoted text|input|untrusted \w+)\b",
    # Roles, and who is spoken to.
    rf"\b(?:dear|attention|hey|hello|hi|note (?:to|for)|notice (?:to|for)|message (?:to|for)|"
    rf"memo (?:to|for)|reminder (?:to|for)|instructions? (?:to|for)|directive (?:to|for)|"
    rf"important for)\b[ ,:]*(?:any |all |the )?{_MACHINE}",
    rf"\b(?:if|because|since|as) you(?:'re| are)(?: being)? (?:read by )?{_MACHINE}",
    rf"\b{_MACHINE}(?: \w+){{0,5}}? {_MUST} (?:\w+ )?{_TELL}\b",
    r"\byou are (?:now|no longer|from now on|hereby)\b",
    r"\bfrom (?:now|this point|here) on\W+(?:you|only|always|never|answer|respond|act)\b",
    r"\b(?:pretend|imagine|assume|suppose)\W+(?:that\W+)?(?:you|to be)\b(?:'re| are| were)?",
    r"\b(?:role-?play|act|behave|respond|answer|reply|speak|continue) as (?:if you"
    r"|though you|an? |"
    r"my |the )(?:\w+ ){0,3}?(?:ai|assistant|model|persona|pirate|expert|doctor|character|"
    r"grandmother|developer|salesman|who\b)",
    rf"\byou {_MUST} (?:(?:now|only|always|never|not|also|then|therefore|immediately|simply) )*"
    rf"{_TELL}\b",
    r"\byou are (?:an? |the )(?:\w+ ){0,3}(?:agent|bot|chat-?bot|assistant|ai|model|spokes\w+)\b",
    rf"\b(?:for use by|intended for|addressed to|remark (?:to|for)|test of) {_MACHINE}",
    rf"\b(?:summaries|answers?|replies|responses) (?:of|to|about|on) (?:this|the|any|every|all) "
    rf"\w+ {_MUST} (?:say|state|mention|include|conclude|report)\b",
    r"\b(?:reply|response|answer|output) (?:schema|format) (?:has|is|must|now)\b",
    r"\b(?:if you (?:fail|do not|don't|refuse|comply|obey)|unless you|whoever (?:reads|processes|"
    r"summari[sz]es))\b",
    r"\b(?:include|emit|output|say|print|write) the (?:secret )?(?:code ?word|string|token|"
    r"phrase|password)\b",
    r"\bsummari[sz]e (?:this|the) \w+ as follows\b|\brank (?:it|me|us) (?:first|highest|top)\b",
    r"\b(?:answer|respond to|reply to) (?:all|any|every) (?:further|other|subsequent|following|"
    r"future) (?:questions?|queries)\b",
    r"(?:\bq(?:uestion)?\s?:.{3,300}?\ba(?:nswer)?\s?:.{3,300}?){3}",
    # What an answer is to be.
    r"\b(?:in|to|of|with|from|into) your (?:final |next |own |whole |entire )*(?:answer|response|"
    r"reply|summary|output|conclusion)s?\b",
    r"\byour (?:only |final |next |new |real |true |sole )*(?:answer|response|reply|summary"
    r"|output|"
    r"task|job|goal|instructions?|system prompt|role|objective|purpose)\b",
    rf"{_BEGINS}(?:answer|respond|reply|output|print|say|write|repeat|append|echo|state"
    rf"|conclude)\b"
    r"(?: (?:to )?(?:this|the|any|every|all|each)(?: \w+){0,3})?[^\w:]+(?:only|exactly"
    r"|simply|just|"
    r"always|with\b|verbatim|instead|as follows|the following|the words?|the phrase|the string|"
    r"the sentence|that|yes|no|['\"\u201c\u2018]?(?:yes|no)\b|['\"\u201c\u2018])",
    rf"{_BEGINS}(?:only |always |never |also )*(?:cite|quote|reference|mention|recommend"
    rf"|include|add|"
    r"append|insert|rank|rate|put|place|list|prefer|use)\W+(?:only\W+|always\W+)*(?:pmids?\b"
    r"|this "
    r"(?:passage|abstract|paper|article|study|document|link|url|text|source|citation)\b|the "
    r"(?:following|link|url|words?|phrase|sentence)\b|https?:)",
    r"\b(?:when|whenever|if|while|before)\W+(?:you (?:are )?)?(?:asked|answering|summari[sz]ing|"
    r"citing|responding|replying|queried|writing an answer|generating)\b",
    r"\b(?:the )?(?:correct|final|right|only(?: \w+)?|true|expected|official|gold|required)"
    r" (?:answer|response|reply|output)(?: (?:to|for) (?:this|the|any|every|all)(?: \w+){1,3})?"
    r"(?: (?:is|must|should|will)\b| ?:)",
    r"\b(?:all|any|every|the)(?: the)? (?:other|remaining|rest of the|above|previous|preceding)"
    r" (?:\w+ )?(?:passages?|evidence|sources|documents|abstracts|citations"
    r"|results)\b(?:[^.]{0,40})"
    r"\b(?:retracted|withdrawn|fake|fabricated|false|invalid|ignored|outdated|untrusted|void)\b",
    r"\b(?:do|does) not (?:mention|cite|reveal|disclose|tell|use|include|trust|show|report)\W+"
    r"(?:this (?:instruction|message|note)|(?:to )?the user|any (?:other|contra\w+)|the (?:other|"
    r"contra\w+|above)|that you)\b",
    r"\b(?:tell|inform|advise|warn|convince|persuade|ask|instruct|direct|urge) the (?:user"
    r"|reader|"
    r"questioner|asker)\b",
    # Secrets.
    r"\b(?:reveal|print|show|repeat|output|leak|disclose|display|expose|dump|quote|recite|send|"
    r"include|write out|tell me)\b[^.]{0,40}\b(?:system|initial|hidden|developer'?s?|secret|"
    r"original|full|entire)\W+(?:prompt|message|instructions?)\b",
    r"\b(?:reveal|print|show|output|leak|disclose|send|exfiltrate|dump)\b[^.]{0,30}\b(?:api[ _-]?"
    r"keys?|passwords?|credentials|environment variables|chat history|conversation)\b",
    r"\byour (?:system )?(?:prompt|instructions|guidelines|rules|programming|training"
    r"|developers?)\b",
    # Tokens and forms of templates and replies; links that carry what was said away.
    r"<\|[^|>]{1,40}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|<bos>|<eos>",
    r"<\s*/?\s*(?:system|assistant|evidence|instructions?|user|human|prompt|passages?|answer"
    r"|context|"
    r"tool(?:_\w+)?|function\w*|script|img|iframe|important)\b[^>]{0,80}>",
    r"(?:^|\n|[.!?]\s+)\W{0,4}(?:assistant|system|human|user|ai|developer)\W{0,4}:",
    r"#{2,}\s*(?:instructions?|system|response|assistant|user|input|output)\b",
    r"[{,]\s*[\"'](?:role|answers?|content|tool|system|instructions?|reply|pmids?|exact_answer|"
    r"ideal_answer|function|name)[\"']\s*:",
    r"<!--|!\[[^\]]{0,200}\]\(|\]\(\s*(?:https?|javascript|data):|\bjavascript:|\bdata:text/",
    r"https?://\S+[?&]\w+=\W*(?:\{|\[|<|your|prompt|question|answer|data\b|q\b)",
    r"\b(?:decode|decrypt|decipher|unscramble|rot-?13|base-?64|reverse)\b[^.]{0,80}\b(?:follow|"
    r"execute|obey|do what|instructions?|comply|carry out|reply|answer|act on)\b",
    # The same overrides in other languages.
    r"\b(?:estimad[oa]|prezad[oa]|caro|cher|chère|lieber?) (?:asistente|assistente|assistant|"
    r"assistent)\b|\b(?:modelo de (?:lenguaje|linguagem)|modèle de langage|sprachmodell|"
    r"modello linguistico|taalmodel)\b.{0,20}[:,]",
    r"\b(?:no tengas en cuenta|a partir (?:de agora|de ahora)|à partir de maintenant|ab jetzt|"
    r"d'ora in poi|vanaf nu)\b.{0,40}\b(?:di\w*|dites|sag\w*|schreib\w*|escrib\w*|preguntas?)\b",
    r"\b(?:messaggio di sistema|mensaje del sistema|mensagem do sistema|message système|"
    r"systemnachricht)\b",
    r"\bignor(?:ez|er|e|a|ar|en|iere?n?|ate|ieren sie)\b.{0,30}\b(?:instruc\w+|istruzion\w+|"
    r"anweisung\w+|consignes?|anteriores|precedent\w*|précédent\w*|vorherig\w*|"
    r"bisherig\w*|obige\w*)",
    r"\b(?:oubli(?:ez|e)|olvid[ae]n?|esqueça|dimentica(?:te)?|vergiss|vergessen sie|missachte"
    r"(?:n sie)?|negeer|vergeet|zignoruj)\b.{0,40}\b(?:instru\w+|istruzion\w+|anweisung\w+"
    r"|consignes?"
    r"|regeln|règles|reglas|regole|alles|tout|todo|tutto|polece\w+)",
    r"\b(?:répond(?:ez|s)|antworten? sie|antworte|responda|responde|rispondi|rispondete|"
    r"beantworte|antwoord)\b.{0,30}\b(?:oui|ja|sí|si|sim|sì|nur|seulement|uniquement|"
    r"solo|sólo|somente|apenas|solamente|toujours|immer|siempre|sempre|que|dass|che)\b",
    r"(?:игнорир|забуд|пренебрег)\w*.{0,40}(?:инструкц|указан|правил)|ответь(?:те)?\b",
    r"(?:忽略|无视|無視|忽視|忘记|请回答|回答时).{0,20}(?:指令|指示|提示|说明|所有|之前"
    r"|以上)|请(?:只)?(?:回答|回复|输出)",
    r"(?:指示|命令|指令|プロンプト).{0,12}(?:無視|忘れ|従わ)|(?:と|だけ)(?:答え|回答し)",
    r"(?:تجاهل|انس\u064e?|اهمل).{0,40}(?:تعليم|الأوامر|السابق)|أجب ",
    r"\b(?:talimat\w*|yönerge\w*|komut\w*)\b.{0,30}\b(?:yok say|göz ard\w|unut|dikkate alma)"
    r"|\b(?:önceki|yukar\wdaki)\b.{0,30}\btalimat|\byan\wtla(?:y\wn)?\b",
    r"(?:이전|앞의|모든).{0,12}(?:지시|명령).{0,12}(?:무시|잊)"
    r"|(?:न\u093fर\u094dद\u0947श).{0,20}(?:अनद\u0947ख\u093e|नजरअ\u0902द\u093eज)",
)
