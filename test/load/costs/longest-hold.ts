/**
 * Searches for what makes a policy keep the thread to itself: for each kind the longest time without a turn for others,
 * in milliseconds, over hostile bodies (`hostile-texts.ts`), and the processor time of the worst. One thread reads
 * for all callers, so what one of them makes of it is felt by all. `bun test/load/costs/longest-hold.ts [MiB] [kind]`
 */
import { chat } from '../../../src/languages/chat/dialect.ts'
import { type ActivePolicy, compilePolicySet } from '../../../src/policies/chain.ts'
import { ModelView, type PolicyContext, RequestView, TokenView } from '../../../src/policies/conditions/context.ts'
import { Placeholders } from '../../../src/policies/redaction.ts'
import { runStage } from '../../../src/policies/stages/run-stage.ts'
import type { StoredPolicy } from '../../../src/policies/stored-policy.ts'
import { type HostileBody, hostileBodies } from './hostile-texts.ts'

const units = Number(process.argv[2] ?? 10) * 1024 * 1024
const only = process.argv[3]?.startsWith('--') ? undefined : process.argv[3]

const policy = (name: string, kind: string, config: Record<string, unknown>, when: string | null = null) => ({
  name,
  stored: {
    ...{ id: 'p', kind, stages: ['pre_request'], config, when, targets: {}, position: 1, mode: 'enforce' },
    ...{ whenBroken: 'deny', enabled: true, version: 1 },
  } as StoredPolicy,
})

const verdict = { verdict: 'deny', reason_code: 'policy.searched' }
const manyTerms = Array.from({ length: 50_000 }, (_, index) => `sword${index.toString(36)}fish`)
const policies = [
  policy('prompt-injection', 'prompt-injection', { action: 'block' }),
  policy('prompt-injection, redact', 'prompt-injection', { action: 'redact', threshold: 0.1 }),
  policy('term-filter', 'term-filter', { terms: ['swordfish', 'aaaaaaaaab', 'pé'], action: 'redact' }),
  policy('term-filter, everything on', 'term-filter', {
    ...{ terms: ['swordfish', 'ignore all', 'a'.repeat(500), 'e\u0301'], action: 'redact' },
    ...{ word_boundaries: true, homoglyphs: true, restore: true },
  }),
  policy('term-filter, 50 000 terms', 'term-filter', { terms: manyTerms, action: 'redact' }),
  policy('pattern-filter', 'pattern-filter', {
    patterns: [
      { name: 'A', pattern: '(a?){200}b' },
      { name: 'B', pattern: '[a-z ]{1,500}!' },
      { name: 'C', pattern: '(?:\\w+\\s+){1,40}zebra' },
      { name: 'D', pattern: '.*x.*y.*z' },
    ],
    action: 'redact',
  }),
  policy('pii', 'pii', { action: 'redact' }),
  policy('pii, restore', 'pii', { action: 'redact', restore: true }),
  policy('secrets', 'secrets', { action: 'redact' }),
  policy('model-access', 'model-access', { deny_models: ['*x*y*z*'] }),
  policy('tool-access', 'tool-access', { deny: ['*x*y*z*'] }),
  policy('request-limits', 'request-limits', { max_input_characters: 1, max_messages: 1 }),
  policy('request-rewrite', 'request-rewrite', { system_prefix: 'Be brief' }),
  policy('json-schema', 'json-schema', {
    schema: {
      type: 'object',
      properties: {
        messages: {
          type: 'array',
          items: { type: 'object', required: ['role'], properties: { content: { maxLength: 5 } } },
        },
      },
    },
    applies_to: 'body',
  }),
  policy('json-schema, uniqueItems', 'json-schema', {
    schema: { type: 'object', properties: { messages: { uniqueItems: true } } },
    applies_to: 'body',
  }),
  policy('condition: contains', 'condition', verdict, 'request.text.contains("aaaaaaaaaaab")'),
  policy('condition: size', 'condition', verdict, 'size(request.text) < 5'),
  policy('condition: matches', 'condition', verdict, 'request.text.matches("(?i)ignore (\\\\w+ ){0,9}zebra")'),
  policy(
    'condition: macro',
    'condition',
    verdict,
    'request.messages.exists(m, m.text.contains("zz") || m.text.matches("y+z"))',
  ),
  policy('escalate', 'escalate', { reason_code: 'policy.searched' }, 'request.messages.all(m, m.text == "q")'),
]
  .filter(({ name }) => only === undefined || name.startsWith(only))
  .map(({ name, stored }) => ({ name, active: compiledStage(stored) }))

/** Milliseconds that this thread computed: what else the machine does is not in it. */
const spent = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

interface Hold {
  readonly longest: number
  readonly total: number
}

/** The longest gap between two turns while something runs. */
async function holdOf(run: () => unknown): Promise<Hold> {
  let longest = 0
  let since = spent()
  let isOver = false
  const look = () => {
    const now = spent()
    longest = Math.max(longest, now - since)
    since = now
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  await new Promise<void>((resolve) => setImmediate(resolve))
  const from = spent()
  await run()
  isOver = true
  const total = spent() - from
  await new Promise<void>((resolve) => setImmediate(resolve))
  return { longest: Math.max(longest, spent() - since), total }
}

function contextOf(body: Record<string, unknown>): PolicyContext {
  return {
    request: new RequestView({
      ...{ family: 'chat', model: 'm', stream: false, sessionId: null, body, headers: new Headers() },
      texts: () => chat.requestText(body),
    }),
    response: null,
    token: new TokenView({
      id: 't',
      purpose: '',
      roles: [],
      teamId: null,
      userId: null,
      gatewayId: null,
      metadata: {},
    }),
    model: new ModelView('m', 'p'),
    now: new Date(0),
  }
}

function compiledStage(stored: StoredPolicy): readonly ActivePolicy[] {
  const subject = { organizationId: 'o', gatewayId: 'g', tokenId: 't', teamId: null, policyIds: [], model: 'm' }
  const active = compilePolicySet([stored])
    .chainFor({ ...subject, family: 'chat' })
    .at('pre_request')
  for (const { compiled } of active) if (compiled instanceof Error) throw compiled
  return active
}

function stage(active: readonly ActivePolicy[], context: PolicyContext, body: Record<string, unknown>) {
  const facts = chat.read(body)
  const tools = {
    ...{ fetch: () => Promise.reject(new Error('none')), resolve: () => Promise.resolve([]), privateWebhooks: false },
    throwIfCut: () => undefined,
    signal: new AbortController().signal,
  }
  return () =>
    runStage({
      policies: active,
      subject: {
        ...{ stage: 'pre_request', context, facts, body, requestBody: body },
        texts: () => context.request.slots(),
        placeholders: new Placeholders(body),
      },
      tools,
      now: () => performance.now(),
      broken: () => undefined,
    })
}

const parts = process.argv.includes('--all')
const worst = new Map<string, { body: string } & Hold>()
const note = (kind: string, body: string, hold: Hold) => {
  if (parts) console.log(`  ${kind} | ${body} | ${hold.longest.toFixed(0)} | ${hold.total.toFixed(0)}`)
  if (hold.longest > (worst.get(kind)?.longest ?? -1)) worst.set(kind, { body, ...hold })
}

async function measure({ name, body: made }: HostileBody): Promise<void> {
  const json = JSON.stringify(made)
  for (const { name: kind, active } of policies) {
    const body: Record<string, unknown> = JSON.parse(json)
    const context = contextOf(body)
    note('(listing the texts)', name, await holdOf(() => context.request.slots()))
    Bun.gc(true)
    note(kind, name, await holdOf(stage(active, context, body)))
  }
}

for (const body of hostileBodies(units)) await measure(body)
console.log(`\n| kind | longest hold, ms | of the body | processor time of it, ms |\n|---|---|---|---|`)
for (const [kind, { longest, body, total }] of worst) {
  console.log(`| ${kind} | ${longest.toFixed(0)} | ${body} | ${total.toFixed(0)} |`)
}
