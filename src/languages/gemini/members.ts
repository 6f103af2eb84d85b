/**
 * The members of a Gemini request. The gateway reads it in the form of `request-form.ts`: the model, and whether to
 * stream, stand in the address on the wire, and the settings inside `generationConfig`.
 */
import { noLogprobs, notStored } from '../chat/members.ts'
import type { Member, MemberTable } from '../member-table.ts'

/** The settings of a Gemini request, as members of its `generationConfig`. */
export const generationConfigMembers = {
  maxOutputTokens: { setting: 'maxOutputTokens' },
  temperature: { setting: 'temperature' },
  topP: { setting: 'topP' },
  topK: { setting: 'topK' },
  seed: { setting: 'seed' },
  frequencyPenalty: { setting: 'frequencyPenalty' },
  presencePenalty: { setting: 'presencePenalty' },
  stopSequences: { setting: 'stop' },
} as const satisfies MemberTable

/** The beginning of the names of settings. */
export const settingPrefix = 'generationConfig.'

const carried = 'carried'
const ownServer = { refused: 'only its own provider keeps it' }
const oneText = 'other providers can only answer with text'

const ofConfig: MemberTable = {
  maxOutputTokens: { ...generationConfigMembers.maxOutputTokens, role: 'output limit', translation: carried },
  candidateCount: { role: 'choices', translation: { onlyAs: [1], refused: 'other providers return only one answer' } },
  temperature: { ...generationConfigMembers.temperature, translation: carried },
  topP: { ...generationConfigMembers.topP, translation: carried },
  topK: { ...generationConfigMembers.topK, translation: carried },
  seed: { ...generationConfigMembers.seed, translation: carried },
  frequencyPenalty: { ...generationConfigMembers.frequencyPenalty, translation: carried },
  presencePenalty: { ...generationConfigMembers.presencePenalty, translation: carried },
  stopSequences: { ...generationConfigMembers.stopSequences, translation: carried },
  responseMimeType: { text: 'none', translation: carried },
  responseSchema: { text: 'description', translation: carried },
  responseJsonSchema: { text: 'description', translation: carried },
  thinkingConfig: { text: 'none', translation: carried },
  mediaResolution: { text: 'none', translation: { leftOut: 'other providers have it for each image' } },
  responseModalities: { text: 'none', translation: { onlyAs: [['TEXT'], []], refused: oneText } },
  responseLogprobs: { translation: { onlyAs: [false], refused: noLogprobs } },
  logprobs: { translation: { onlyAs: [0], refused: noLogprobs } },
  speechConfig: { translation: { refused: oneText } },
  imageConfig: { translation: { refused: oneText } },
}

export const geminiMembers = {
  model: { text: 'none', translation: carried },
  systemInstruction: { text: 'own', translation: carried },
  contents: { text: 'own', role: 'conversation', translation: carried },
  tools: { text: 'description', translation: carried },
  toolConfig: { text: 'none', translation: carried },
  stream: { text: 'none', role: 'stream', translation: carried },
  safetySettings: { text: 'none', translation: { leftOut: 'other providers have filters of their own' } },
  cachedContent: { text: 'none', translation: ownServer },
  labels: { translation: { withoutEffect: "it is a label in the provider's own bills" } },
  store: { text: 'none', translation: { onlyAs: [false], leftOut: notStored } },
  serviceTier: {
    text: 'none',
    role: 'service tier',
    usual: 'standard',
    translation: { refused: 'no other provider can promise how fast it runs', onlyAs: ['standard'] },
  },
  ...settings(ofConfig),
} as const satisfies MemberTable

function settings(members: MemberTable): Readonly<Record<`${typeof settingPrefix}${string}`, Setting>> {
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [settingPrefix + name, member as Setting]))
}

/** A setting is read by no code of the dialect's own. */
type Setting = Omit<Member, 'text'> & { readonly text?: Exclude<Member['text'], 'own' | undefined> }
