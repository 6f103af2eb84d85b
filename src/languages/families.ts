/**
 * Every API family, one row each: where applications reach it, which permission it needs, which policies run on it,
 * and the form of its requests and answers. All lists of families in the project follow from this table or are
 * checked against it by types.
 *
 * To add a family: its folder, its row here, its dialect in `index.ts`. The compiler and `families.test.ts` then name
 * what is missing.
 */

import { speechMembers, transcriptionsMembers } from './audio/members.ts'
import { chatMembers } from './chat/members.ts'
import { completionsMembers } from './completions/members.ts'
import { embeddingMembers } from './embeddings/members.ts'
import { geminiMembers } from './gemini/members.ts'
import { imageEditMembers, imageFiles, imageMembers } from './images/members.ts'
import { type MemberRole, type MemberTable, membersWhere } from './member-table.ts'
import { messagesMembers } from './messages/members.ts'
import { moderationsMembers } from './moderations/members.ts'
import { realtimeMembers } from './realtime/members.ts'
import { rerankMembers } from './rerank/members.ts'
import { responsesMembers } from './responses/members.ts'

export const policyStages = ['pre_request', 'post_request', 'pre_response'] as const
export type PolicyStage = (typeof policyStages)[number]

interface FamilyRow {
  /** The path of its `POST` requests; of realtime, of its WebSocket. */
  readonly path: string
  /** Further paths of such requests. */
  readonly alsoAt?: readonly string[]
  readonly permission: 'gateway:invoke' | 'mcp:invoke'
  readonly policyStages: readonly PolicyStage[]
  /**
   * Paths at which a WebSocket carries its requests. `shared`: a request without an upgrade has another meaning at
   * this path, and the API description does not list the path.
   */
  readonly webSockets?: readonly { readonly path: string; readonly shared?: true }[]
  readonly takes: 'text' | 'audio'
  /** Its input may be sound that no body shows. */
  readonly hears?: true
  /** The fields of its form that are files; absent if it takes JSON. */
  readonly files?: readonly string[]
  /** `numbers`: vectors and verdicts, whose output is not billed. */
  readonly gives: 'text' | 'audio' | 'images' | 'numbers'
  /** The input may be a list of inputs, each of which may fill the model's context window. */
  readonly manyInputs?: true
  /** The gateway translates it for providers that speak another language (`translation/languages.ts`). */
  readonly translated?: true
  /** The list that every whole answer has; absent if answers have other forms. */
  readonly answerList?: {
    readonly member: string
    readonly mayBeEmpty: boolean
    /** The object that an answer may have in place of the list. */
    readonly or?: string
  }
  /**
   * Types of whole answers that are not JSON, as the beginning of a Content-Type. They are passed on in pieces and
   * not read. Absent if every whole answer is JSON.
   */
  readonly plainAnswers?: readonly string[]
  /** An `x-request-id` with an invalid form is refused with 400 instead of replaced. */
  readonly strictRequestId?: true
  /** `gen_ai.operation.name` of its spans; absent: the family's own name. */
  readonly operation?: string
  /** The members of its requests. */
  readonly members: MemberTable
}

const transcripts = ['text/plain', 'text/vtt', 'text/srt', 'application/x-subrip']
const requestOnly = ['pre_request'] as const satisfies readonly PolicyStage[]

const rows = {
  chat: {
    path: '/v1/chat/completions',
    permission: 'gateway:invoke',
    policyStages,
    webSockets: [{ path: '/v1/chat/completions/ws' }],
    takes: 'text',
    gives: 'text',
    translated: true,
    answerList: { member: 'choices', mayBeEmpty: false },
    operation: 'chat',
    members: chatMembers,
  },
  responses: {
    path: '/v1/responses',
    permission: 'gateway:invoke',
    policyStages,
    // The OpenAI SDK dials the second one.
    webSockets: [{ path: '/v1/responses/ws' }, { path: '/v1/responses', shared: true }],
    takes: 'text',
    gives: 'text',
    translated: true,
    answerList: { member: 'output', mayBeEmpty: true },
    operation: 'chat',
    members: responsesMembers,
  },
  messages: {
    path: '/v1/messages',
    permission: 'gateway:invoke',
    policyStages,
    takes: 'text',
    gives: 'text',
    translated: true,
    answerList: { member: 'content', mayBeEmpty: true },
    strictRequestId: true,
    operation: 'chat',
    members: messagesMembers,
  },
  gemini: {
    path: '/v1beta/models/{model}:generateContent',
    alsoAt: ['/v1beta/models/{model}:streamGenerateContent'],
    permission: 'gateway:invoke',
    policyStages,
    takes: 'text',
    gives: 'text',
    translated: true,
    answerList: { member: 'candidates', mayBeEmpty: false, or: 'promptFeedback' },
    operation: 'generate_content',
    members: geminiMembers,
  },
  embeddings: {
    path: '/v1/embeddings',
    permission: 'gateway:invoke',
    policyStages: requestOnly,
    takes: 'text',
    gives: 'numbers',
    manyInputs: true,
    answerList: { member: 'data', mayBeEmpty: false },
    members: embeddingMembers,
  },
  transcriptions: {
    path: '/v1/audio/transcriptions',
    permission: 'gateway:invoke',
    policyStages: requestOnly,
    takes: 'audio',
    files: ['file'],
    gives: 'text',
    plainAnswers: transcripts,
    members: transcriptionsMembers,
  },
  translations: {
    path: '/v1/audio/translations',
    permission: 'gateway:invoke',
    policyStages: requestOnly,
    takes: 'audio',
    files: ['file'],
    gives: 'text',
    plainAnswers: transcripts,
    members: transcriptionsMembers,
  },
  speech: {
    path: '/v1/audio/speech',
    permission: 'gateway:invoke',
    policyStages: requestOnly,
    takes: 'text',
    gives: 'audio',
    plainAnswers: ['audio/', 'application/octet-stream'],
    members: speechMembers,
  },
  completions: {
    path: '/v1/completions',
    permission: 'gateway:invoke',
    policyStages: requestOnly,
    takes: 'text',
    gives: 'text',
    manyInputs: true,
    answerList: { member: 'choices', mayBeEmpty: false },
    operation: 'text_completion',
    members: completionsMembers,
  },
  moderations: {
    path: '/v1/moderations',
    permission: 'gateway:invoke',
    policyStages: requestOnly,
    takes: 'text',
    gives: 'numbers',
    manyInputs: true,
    answerList: { member: 'results', mayBeEmpty: false },
    members: moderationsMembers,
  },
  images: {
    path: '/v1/images/generations',
    permission: 'gateway:invoke',
    policyStages: requestOnly,
    takes: 'text',
    gives: 'images',
    answerList: { member: 'data', mayBeEmpty: false },
    operation: 'image_generation',
    members: imageMembers,
  },
  image_edits: {
    path: '/v1/images/edits',
    permission: 'gateway:invoke',
    policyStages: requestOnly,
    takes: 'text',
    files: imageFiles,
    gives: 'images',
    answerList: { member: 'data', mayBeEmpty: false },
    operation: 'image_edit',
    members: imageEditMembers,
  },
  rerank: {
    path: '/v1/rerank',
    permission: 'gateway:invoke',
    policyStages: requestOnly,
    takes: 'text',
    gives: 'numbers',
    manyInputs: true,
    answerList: { member: 'results', mayBeEmpty: true },
    members: rerankMembers,
  },
  /** Sessions over a WebSocket alone: nothing is posted. */
  realtime: {
    path: '/v1/realtime',
    permission: 'gateway:invoke',
    policyStages,
    webSockets: [{ path: '/v1/realtime' }],
    takes: 'text',
    hears: true,
    gives: 'text',
    operation: 'chat',
    members: realtimeMembers,
  },
  /** Tools, prompts and resources, which do not come from a model. */
  mcp: { path: '/mcp', permission: 'mcp:invoke', policyStages, takes: 'text', gives: 'text', members: {} },
} as const satisfies Readonly<Record<string, FamilyRow>>

type Rows = typeof rows

export type Family = keyof Rows

/** Families that models answer. */
export type ModelFamily = Exclude<Family, 'mcp'>

/** Families whose requests are posted to a path of their own. */
export type PostedFamily = Exclude<ModelFamily, 'realtime'>

/** Families whose row has this member. */
type FamilyWith<Member extends keyof FamilyRow> = {
  [Name in Family]: Member extends keyof Rows[Name] ? Name : never
}[Family]

export type TranslatedFamily = FamilyWith<'translated'>
export type SocketFamily = FamilyWith<'webSockets'>

export const families: Readonly<Record<Family, FamilyRow>> = rows

export const isFamily = (name: string): name is Family => Object.hasOwn(rows, name)
export const isModelFamily = (name: string): name is ModelFamily => isFamily(name) && name !== 'mcp'
export const isPosted = (family: Family): family is PostedFamily => family !== 'mcp' && family !== 'realtime'
export const isTranslated = (family: Family): family is TranslatedFamily => families[family].translated === true
export const hasSockets = (family: Family): family is SocketFamily => families[family].webSockets !== undefined

export const familyNames: readonly Family[] = Object.keys(rows).filter(isFamily)
export const modelFamilies: readonly ModelFamily[] = familyNames.filter(isModelFamily)

/** The route as events name it: `POST /v1/chat/completions`. */
export const routeOf = (family: Family): string => `POST ${families[family].path}`

const byRole: ReadonlyMap<Family, ReadonlyMap<MemberRole, readonly string[]>> = new Map(
  familyNames.map((family) => {
    const { members } = families[family]
    const roles = Object.values(members).flatMap(({ role }) => role ?? [])
    return [family, new Map(roles.map((role) => [role, membersWhere(members, (member) => member.role === role)]))]
  }),
)
const none: readonly string[] = []

/** The members of a family's requests that have this role. */
export const membersWith = (family: Family, role: MemberRole): readonly string[] =>
  byRole.get(family)?.get(role) ?? none

/** The first member with this role. */
export const memberWith = (family: Family, role: MemberRole): string | undefined => membersWith(family, role)[0]
