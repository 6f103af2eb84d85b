/**
 * Which headers pass, as data: one row each with its reason, in both directions. What has no row is dropped. A name
 * that ends in `*` stands for all names that begin so; such a row never passes the headers of `neverPassed`
 * (`headers.ts` applies the rows).
 */
import type { Family } from '../../languages/families.ts'

export interface HeaderRule {
  /** In lower case; with `*` at its end the beginning of a name. */
  readonly name: string
  /** Why a client or a provider needs it. */
  readonly reason: string
  /** The families whose requests or answers have it; absent: all. */
  readonly families?: readonly Family[]
  /** It belongs to the caller's language, so a provider that is asked in another language does not get it. */
  readonly ofLanguage?: true
}

/** From the caller to the provider. */
export const toProvider: readonly HeaderRule[] = [
  { name: 'accept', reason: 'The form in which the client reads the answer' },
  { name: 'user-agent', reason: 'Providers tell clients apart by it, for support and for features of one client' },
  {
    name: 'idempotency-key',
    reason: 'A provider that keeps it does not run a request twice when the client repeats it',
  },
  { name: 'openai-beta', ofLanguage: true, reason: 'Clients switch preview features of the API on with it' },
  { name: 'anthropic-version', ofLanguage: true, reason: 'The version of the API that the client speaks' },
  { name: 'anthropic-beta', ofLanguage: true, reason: 'Claude Code and the SDK switch on the features that they use' },
  {
    name: 'originator',
    families: ['responses'],
    ofLanguage: true,
    reason: 'Codex names itself; the provider turns on what that client can read',
  },
  {
    name: 'x-codex-*',
    families: ['responses'],
    ofLanguage: true,
    reason: 'State and features of a Codex turn, such as x-codex-turn-state, which keeps a turn on one of its servers',
  },
  {
    name: 'x-openai-subagent',
    families: ['responses'],
    ofLanguage: true,
    reason: 'Codex says that a review or a compaction asks, and not its user',
  },
  {
    name: 'x-responsesapi-include-timing-metrics',
    families: ['responses'],
    ofLanguage: true,
    reason: 'Codex asks for an event with the times of the response',
  },
]

const limits: readonly HeaderRule[] = ['requests', 'tokens'].flatMap((what) =>
  ['limit', 'remaining', 'reset'].map((which) => ({
    name: `x-ratelimit-${which}-${what}`,
    reason: 'Clients slow down before the provider refuses them',
  })),
)

/** From the provider to the caller. */
export const toCaller: readonly HeaderRule[] = [
  { name: 'content-type', reason: 'The form of the body' },
  { name: 'openai-processing-ms', reason: 'How long the provider worked, which clients log' },
  { name: 'openai-version', reason: 'The version of the API that answered, which clients log' },
  ...limits,
  {
    name: 'openai-model',
    families: ['responses'],
    reason: 'Codex warns its user when another model answered',
  },
  {
    name: 'x-reasoning-included',
    families: ['responses'],
    reason: 'Codex counts its context by it: whether the usage includes earlier reasoning',
  },
  { name: 'x-models-etag', families: ['responses'], reason: 'Codex reads its list of models again when this changes' },
  {
    name: 'x-codex-turn-state',
    families: ['responses'],
    reason: 'Codex sends it back with the other requests of the same turn',
  },
  {
    name: 'x-codex-primary-*',
    families: ['responses'],
    reason: 'Codex shows how much of the shorter limit of its account is used',
  },
  {
    name: 'x-codex-secondary-*',
    families: ['responses'],
    reason: 'Codex shows how much of the longer limit of its account is used',
  },
  {
    name: 'anthropic-ratelimit-*',
    families: ['messages'],
    reason: "Claude Code and the SDK read the limits of the provider's account",
  },
  {
    name: 'content-disposition',
    families: ['speech', 'transcriptions', 'translations'],
    reason: 'The name under which a client stores the file',
  },
]

/**
 * Headers that no row passes. Hop-by-hop headers belong to one connection (RFC 9110 section 7.6.1), the others carry
 * credentials or choose whose account pays. `header-rules.test.ts` holds the rows against this list; `headers.ts` holds
 * every name against it that a row with `*` matches.
 */
export const neverPassed: readonly { readonly names: RegExp; readonly reason: string }[] = [
  {
    names: /^(?:connection|keep-alive|te|trailers?|transfer-encoding|upgrade|expect|host)$/,
    reason: 'It belongs to one connection',
  },
  { names: /^proxy-/, reason: 'It belongs to one connection, or carries the credential of a proxy' },
  { names: /^(?:content-length|content-encoding|accept-encoding)$/, reason: 'The gateway makes its own body' },
  {
    names:
      /(?:^|-)(?:authorization|cookie2?|set-cookie2?|credentials?|passwords?|secrets?|api-?keys?|assertion)(?:-|$)/,
    reason: 'It carries a credential',
  },
  { names: /^x-(?:.*-)?(?:access-|auth-|bearer-|id-|security-|session-)?token$/, reason: 'It carries a credential' },
  {
    names: /^(?:openai-organization|openai-project|chatgpt-account-id|x-goog-user-project)$/,
    reason: "It chooses whose account pays, which is the operator's choice",
  },
  { names: /^(?:forwarded|via|x-forwarded-.*|x-real-ip)$/, reason: 'It shows the network behind the gateway' },
]
