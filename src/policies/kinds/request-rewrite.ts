/**
 * Sets, removes and bounds outermost members of a request, and adds text before or after a conversation's system
 * prompt. The conversation itself, and the members that decide where the request goes (model, stream, session_id),
 * cannot be set.
 */
import { z } from 'zod'
import { isObject } from '../conditions/context.ts'
import { type Change, type Decision, policyKind, type Subject } from './kind.ts'

const fixed: ReadonlySet<string> = new Set([
  'model',
  'stream',
  'session_id',
  'messages',
  'input',
  'system',
  'contents',
  'systemInstruction',
])
const member = z
  .string()
  .min(1)
  .max(100)
  .refine((name) => !fixed.has(name), 'This member cannot be set or removed')

export const requestRewrite = policyKind({
  kind: 'request-rewrite',
  about: 'Sets, removes and bounds members of a request, and adds to its system prompt',
  stages: ['pre_request'],
  config: z
    .strictObject({
      set: z.record(member, z.json()).optional().describe('Members and their new values'),
      set_default: z.record(member, z.json()).optional().describe('Values of members that are absent'),
      at_most: z.record(member, z.number()).optional().describe('Numbers that are lowered to this where above'),
      remove: z.array(member).optional(),
      system_prefix: z.string().min(1).max(20_000).optional().describe('Put before the system prompt, or made one'),
      system_suffix: z.string().min(1).max(20_000).optional(),
      reason_code: z.literal('policy.request_rewrite').default('policy.request_rewrite'),
    })
    .refine(({ reason_code: _, ...changes }) => Object.keys(changes).length > 0, 'Give at least one change'),
  compile: (config) => ({
    form: 'whole',
    consider(subject): Decision | null {
      const changes = [...memberChanges(config, subject.body), ...systemChanges(config, subject)]
      if (changes.length === 0) return null
      const targets = changes.map((change) => ('slot' in change ? change.slot.member : change.member))
      return { verdict: 'rewrite', reasonCode: config.reason_code, targets: [...new Set(targets)], changes }
    },
  }),
})

interface Config {
  set?: Record<string, unknown> | undefined
  set_default?: Record<string, unknown> | undefined
  at_most?: Record<string, number> | undefined
  remove?: string[] | undefined
  system_prefix?: string | undefined
  system_suffix?: string | undefined
}

function memberChanges(config: Config, body: Subject['body']): Change[] {
  if (body === null) return []
  const changes: Change[] = []
  const put = (name: string, value: unknown) => {
    if (!Bun.deepEquals(body[name], value)) changes.push({ member: name, value })
  }
  for (const [name, value] of Object.entries(config.set ?? {})) put(name, value)
  for (const [name, value] of Object.entries(config.set_default ?? {})) if (!(name in body)) put(name, value)
  for (const [name, most] of Object.entries(config.at_most ?? {})) {
    const present = body[name]
    if (typeof present === 'number' && present > most) put(name, most)
  }
  for (const name of config.remove ?? []) if (name in body) put(name, undefined)
  return changes
}

/** The first system text, or a new one if the family has a place for it. */
function systemChanges(
  { system_prefix: prefix, system_suffix: suffix }: Config,
  { texts, body, context }: Subject,
): Change[] {
  if (prefix === undefined && suffix === undefined) return []
  const join = (text: string | null) => [prefix, text, suffix].filter((part) => part !== undefined && part !== null)
  const present = texts.find(({ role, kind }) => kind === 'content' && (role === 'system' || role === 'developer'))
  if (present !== undefined) return [{ slot: present, text: join(present.text).join('\n') }]
  const text = join(null).join('\n')
  const { family } = context.request
  if (family === 'messages') return [{ member: 'system', value: text }]
  if (family === 'gemini') return [{ member: 'systemInstruction', value: { parts: [{ text }] } }]
  if (family === 'responses') return [{ member: 'instructions', value: text }]
  const messages = isObject(body) && Array.isArray(body.messages) ? body.messages : null
  if (family !== 'chat' || messages === null) return []
  return [{ member: 'messages', value: [{ role: 'system', content: text }, ...messages] }]
}
