/**
 * Signs of attempts to take over a model: named signals, each with its weight. A score is the sum of
 * the weights of signals near each other, at most 1. So every finding can be explained by its signals, and only the plainest signals
 * make a text suspicious on their own: people do write "act as a travel guide".
 */

import type { InjectionSignal } from './injection-signal.ts'
import { injectionLanguages } from './languages/index.ts'
import { signalsOf } from './languages/language.ts'

const instructions = String.raw`(?:instruct\w*|prompts?|rules?|guidelines?|directions?|directives?|orders|commands?|programming|training|restrictions?|restraints?|(?:system|developer) messages?)`
const earlier =
  '(?:previous|prior|preceding|above|earlier|former|initial|original|past|existing|system|your|all|any|every|these|those)'

/** An order that follows "ignore the above": a person who corrects himself does not continue like that. */
const thenSay = String.raw`[.,;]? ?(?:and|then|instead),? (?:just |simply |instead |only )?(?:say|state|repeat|print|output|write|give|tell|reveal|show|display|respond with|reply with)\b`

/** A request to say something. */
const say = String.raw`\b(?:reveal|show|print|repeat|tell|output|display|share|give|provide|confirm|disclose|leak|spell|encode|expose|dump|recite|echo|reproduce|copy|list|translate|summari[sz]e|paraphrase|describe|explain|quote|return|export|send|read|what(?:'s|’s| is| are| was| were)|write|exfiltrate|divulge|let me see|see|know|i (?:need|want|require))\b`

const english: readonly InjectionSignal[] = [
  {
    name: 'override_instructions',
    weight: 0.7,
    patterns: [
      String.raw`\b(?:ignor(?:e|ing)|disregard|forget|overlook|override|neglect|discard|(?:do not|don't|stop) (?:follow|obey)\w*)\s+(?:\w+\s+){0,4}${earlier}\s+(?:\w+\s+){0,2}${instructions}\b`,
      String.raw`\b(?:ignore|disregard|forget|overlook)\s+(?:everything|all|anything|what(?:ever)?) (?:that )?you(?: were| are| have|['’]ve| had)?(?: ever)?(?: been)? (?:told|taught|instructed|given|programmed|trained|learn\w+|know)\b`,
      String.raw`\b(?:ignore|disregard|forget|overlook)\s+(?:the above|(?:everything|all)(?: that (?:is|was))?(?: said| written)? (?:above|before)|(?:the|this) (?:function|code|text|table|document|content|rest))${thenSay}`,
      '(?:지시|명령|규칙).{0,8}(?:무시|잊)',
    ],
  },
  {
    name: 'unrestricted_persona',
    weight: 0.45,
    patterns: [
      String.raw`\b(?:no|without(?: any)?|free (?:of|from)|lacks?|lacking|(?:do|does|did|is|are|was|were|will)(?: not|n'?t) (?:have|abide|bound|limited|restricted|follow|adhere|care|contain)|not (?:bound|limited|restricted|constrained)|bypass\w*|remov\w+|disabl\w+|broken free|break free|beyond the|any of|devoid of)\s[^.\n]{0,60}\b(?:ethic\w*|moral\w*|restrict\w*|filter\w*|guideline\w*|limitations?|constraints?|censor\w*|(?:content|openai)\w* polic\w*|safety|confines|rules|boundar\w*|consequences|guilt)`,
    ],
  },
  {
    name: 'unfiltered',
    weight: 0.4,
    patterns: [
      String.raw`\b(?:unfiltered|uncensored|amoral|unethical|immoral|jailbr[eo]\w+|do anything now|developer mode|unrestricted|unmoderated|boundless|opposite mode|no[- ]limits?|evil (?:trusted )?\w*(?:bot|ai|confidant|assistant))\b`,
      String.raw`\bno matter (?:how|what|if|the)\b[^.\n]{0,60}(?:illegal|immoral|unethical|harmful|dangerous|offensive|legal)`,
      String.raw`\b(?:like|as|named|called|a|be|you are|acronym) "?['“]?DAN\b`,
    ],
  },
  {
    name: 'persona_takeover',
    weight: 0.25,
    patterns: [
      String.raw`\b(?:from (?:now on|on now|this point|here on)|henceforth|starting now)\b`,
      String.raw`\byou (?:are now|are (?:going|about) to|will now|now) (?:free\b|a\b|an\b|act|be\b|pretend|imitate|immerse|simulate|respond|take on|roleplay|behave)`,
      String.raw`\b(?:immerse yourself|take on the (?:persona|role)|pretend (?:to be|you are|that you)|role-?play(?:ing)? as|simulate a|embody|impersonat\w+)\b`,
    ],
  },
  {
    name: 'role_assignment',
    weight: 0.1,
    patterns: [String.raw`\b(?:act (?:as|like)|you are (?:a|an|the)\b|your (?:name|role) is|play the role)`],
  },
  {
    name: 'kept_in_character',
    weight: 0.3,
    patterns: [
      String.raw`\b(?:never|not|don'?t|without|cannot)\s+(?:ever )?(?:break(?:ing)?|leave|leaving|drop|step out of|get out of)\s+(?:of )?(?:the |your |this )?(?:character|role|persona)`,
      String.raw`\b(?:stay|remain|keep) (?:in|the) (?:character|role)`,
    ],
  },
  {
    name: 'refusal_suppression',
    weight: 0.35,
    patterns: [
      String.raw`\b(?:never|not|n't|cannot|without|none)\b[^.;\n]{0,40}\b(?:refus\w+|apolog\w+|warn(?:ing)?s?|declin\w+|moraliz\w+|disclaimers?|remind(?:s|ed|ing)?\b|i'?m sorry|i can'?t)`,
      // A comma ends the order: "it is the harness, not you, so notes cannot do this".
      String.raw`\b(?:never|not|n't|cannot|without|none)\b[^.,\n]{0,40}\bcannot (?:do|fulfill|assist)\b`,
      String.raw`\b(?:never|not|n't) (?:say|tell|state|mention)\w*[^.\n]{0,40}\b(?:can'?t|cannot|unable|ai language model|can not|not able|chatgpt|an ai)\b`,
      String.raw`\bmust (?:always )?(?:comply|obey|accept|fulfil\w*|answer (?:all|any|every))`,
    ],
  },
  {
    name: 'secret_extraction',
    weight: 0.6,
    patterns: [
      String.raw`\b(?:reveal|show|print|repeat|tell|output|display|share|give|provide|confirm|disclose|leak|spell|encode|what(?:'s| is| are| was| were)|write)\b[^.?!\n]{0,60}\b(?:secret(?: \w+)? (?:key|phrase|code|word)|(?:your|the|their|user'?s) (?:secret|password|pass ?code|pass ?phrase|secret key|credentials|api key))\b`,
      String.raw`\byour (?:password|pass ?code|pass ?phrase|secret(?: key)?)\b`,
      '(?:너의|당신의|네) ?비밀번호|비밀번호(?:가 뭐|는 무엇|를 (?:알려|말해))',
    ],
  },
  {
    name: 'prompt_extraction',
    weight: 0.6,
    patterns: [
      String.raw`${say}[^.?!\n]{0,40}\b(?:your|the|this|these|its|initial|original|hidden|entire|full|complete|above) (?:\w{1,14} ){0,3}(?:system ?prompt|system (?:message|instructions?)|(?:pre-?|meta-?)prompt)\b`,
      String.raw`${say}[^.?!\n]{0,40}\byour (?:\w{1,14} ){0,2}(?:instructions|prompt|rules|guidelines|directives|configuration|constraints|policies|context window|programming)\b`,
      String.raw`${say}[^.?!\n]{0,40}\b(?:initial|original|hidden|secret|internal|confidential|developer|first) (?:\w{1,14} )?(?:prompt|instructions?|directives?|guidelines)\b`,
      String.raw`\b(?:repeat|print|output|copy|reproduce|recite|echo|spell out|write out|dump|tell me|give me)[^.?!\n]{0,30}\b(?:words?|text|everything|all|messages?|lines?|content|conversation|instructions|what was (?:said|written))[^.?!\n]{0,20}\b(?:above|before (?:this|(?:the|my|our) (?:\w{1,14} )?(?:message|conversation|chat|prompt|question|input|query))|preceding|prior to|so far verbatim|up to (?:this|here))`,
      String.raw`\b(?:above|before this|preceding)[^.?!\n]{0,40}\b(?:verbatim|word for word|in (?:a|an|one) (?:code ?block|code fence|markdown)|starting (?:with|from) ["'“]?you are)\b`,
      String.raw`\bstart(?:ing|s)? (?:with|from|at)(?: the (?:words?|phrase|text))? ?["'“‘]?you are\b`,
      String.raw`\b(?:what|which|how)\b[^.?!\n]{0,20}\b(?:were|have|are|had) you (?:been )?(?:programmed|configured|prompted|initiali[sz]ed|forbidden|not allowed|prohibited)\b`,
      String.raw`\bwhat\b[^.?!\n]{0,20}\b(?:were|have|are|had) you (?:been )?(?:told|instructed|given|asked)\b[^.?!\n]{0,40}\b(?:(?:this|the|our|my|your) (?:\w{1,14} )?(?:conversation|chat|session|prompt|instructions?|developers?|creators?|configuration|system)|openai|anthropic|as an? (?:ai|assistant|\w{1,14} model)|not to (?:say|reveal|tell|share|mention|disclose))\b`,
      String.raw`\b(?:what|which)\b[^.?!\n]{0,20}\b(?:instructions?|rules|prompt|guidelines|directives|constraints)\b[^.?!\n]{0,20}\b(?:you (?:received|got|follow|have|given|under|operate)|(?:given|provided|told) to you|do you|did you|were you|are you)\b`,
      String.raw`${say}[^.?!\n]{0,30}\b(?:instructions?|rules|guidelines|directives|constraints)\b[^.?!\n]{0,12}\byou (?:have|must|need|follow|were|are|got|received|operate|obey)\b`,
      String.raw`\b(?:begin|end) of (?:the |your )?(?:system )?(?:prompt|instructions)\b|\b(?:ignore|skip) (?:the )?(?:user|question) and (?:print|output|repeat)\b`,
    ],
  },
  {
    name: 'private_data',
    weight: 0.35,
    patterns: [
      String.raw`\bthe user(?:'s|’s| currently|s)\b[^.?!\n]{0,40}(?:address|e-?mail|birth|live|city|residence|name|initials|card|phone|number)`,
      String.raw`\bwhere does the user\b`,
    ],
  },
  {
    name: 'claimed_authority',
    weight: 0.3,
    patterns: [
      String.raw`\bi(?:'m| am|’m) (?:your|the|a|an) (?:\w+ ){0,2}(?:developer|creator|maintainer|administrator|admin|owner|programmer|police officer|president|ceo|engineer of|law enforcement|openai)`,
      String.raw`\b(?:security audit|for an investigation|emergency override|authorized personnel|i have (?:permission|authorization)|for (?:this|the) audit)\b`,
    ],
  },
  {
    name: 'forged_delimiters',
    weight: 0.6,
    patterns: [
      String.raw`<\|(?:system|user|assistant|im_start|im_end|endoftext|end)\|>`,
      String.raw`\[/?(?:INST|SYS|SYSTEM)\]|<</?SYS>>`,
      String.raw`<\s*/?\s*system(?:[ _-]?(?:mode|prompt|message))?\s*>`,
      String.raw`\b(?:system|override|debug|god|admin|maintenance|root|sudo)[ _]mode\b`,
    ],
  },
  {
    name: 'instructions_in_data',
    weight: 0.6,
    patterns: [
      String.raw`(?:#|//|<!--|/\*)[^\n]{0,160}\b(?:output|answer|sum|result|response|summary)\b[^\n]{0,40}\b(?:is|as|be|to be|with)\b ?['"‘“]`,
      '(?:display: ?none|font-size: ?0|visibility: ?hidden|opacity: ?0)[^<>]{0,40}>[^<]{20,400}',
      String.raw`\b(?:ai|llm|language models?|chatbots?|assistants?) (?:reading|processing|summari[sz]ing|that reads?) this\b`,
    ],
  },
  {
    name: 'two_answers',
    weight: 0.4,
    patterns: [
      String.raw`\b(?:two|2|both)\s+(?:\w+\s+){0,3}(?:responses|answers|ways|paragraphs|personalities|entities|modes)\b`,
      String.raw`\[(?:🔓|🔒)|\((?:🔓|🔒)|\[(?:Chat)?GPT\]:|\[(?:JAILBREAK|DAN)|\((?:GPT|CLASSIC)\)`,
    ],
  },
  {
    name: 'assembled_payload',
    weight: 0.4,
    patterns: [
      String.raw`\b[a-z] ?= ?[a-z] ?\+ ?[a-z](?: ?\+ ?[a-z])+\b`,
      String.raw`\b(?:three|two|following) strings\b`,
      String.raw`\$\w+ ?= ?"`,
    ],
  },
  {
    name: 'concealed_answer',
    weight: 0.3,
    patterns: [
      String.raw`\b(?:in|as|using|to) (?:base ?64|rot ?13|hex(?:adecimal)?|pig latin|morse|leet ?speak|reverse order)\b`,
      String.raw`\b(?:each|every) (?:digit|letter|character)\b|\bcharacter level\b|\bletter by letter\b`,
      String.raw`\b(?:[0-9a-f]{2}){20,200}\b`,
    ],
  },
  {
    name: 'suspended_rules',
    weight: 0.25,
    patterns: [
      String.raw`\b(?:fictional|hypothetical(?:ly)?|imaginary|imaginative|parallel universe|alternate (?:reality|universe)|alien planet|pretend world)\b`,
      String.raw`\b(?:is the norm|is (?:allowed|permitted|legal) (?:here|in this)|anything goes)\b`,
    ],
  },
  {
    name: 'asked_for_harm',
    weight: 0.2,
    patterns: [
      String.raw`\b(?:illegal|immoral|harmful|racist|sexist|offensive|explicit|nsfw|violent|evil|villain\w*|disgusting|derogatory|vulgar|swear(?:ing)?|cursing|fuck\w*)\b`,
    ],
  },
]

/** Of all languages; signals of one name count once for a text. */
export const injectionSignals: readonly InjectionSignal[] = [
  ...english,
  ...Object.values(injectionLanguages).flatMap(signalsOf),
]
