/**
 * `apply -f FILE`: makes an installation hold what a file says. Each policy is known by its name: one that is missing is
 * made, one that differs is changed, and what the file leaves out of it stays. Nothing else is touched, unless `--prune`
 * says that policies which the file does not name are to go.
 */
import { z } from 'zod'
import { Failure } from '../src/failure.ts'
import type { Api } from './api.ts'
import { command, type Leaf } from './command.ts'
import { connect, pageSchema, recordFlags } from './record.ts'
import { readStructuredFile } from './settings.ts'
import { printable } from './table.ts'
import type { Terminal } from './terminal.ts'

const wantedSchema = z.looseObject({ name: z.string().min(1), kind: z.string().min(1) })
type Wanted = z.infer<typeof wantedSchema>

const fileSchema = z.strictObject({ policies: z.array(wantedSchema) })

const presentSchema = z.looseObject({ id: z.string(), name: z.string(), kind: z.string(), version: z.number() })
type Present = z.infer<typeof presentSchema>

export type Step =
  | { action: 'create'; name: string; body: Wanted }
  | {
      action: 'update'
      name: string
      id: string
      version: number
      changes: Record<string, { from: unknown; to: unknown }>
    }
  | { action: 'delete'; name: string; id: string }
  | { action: 'unchanged'; name: string }

export const applyCommand = (terminal: Terminal): Leaf =>
  command({
    about: 'Make policies be what a file says: YAML, TOML or JSON with a list named policies',
    args: {
      file: { type: 'string', alias: 'f', required: true, description: 'The file', valueHint: 'FILE' },
      'dry-run': { type: 'boolean', description: 'Only show what would change' },
      prune: { type: 'boolean', description: 'Delete policies that the file does not name' },
      yes: { type: 'boolean', description: 'With --prune: really delete them' },
      ...recordFlags,
    },
    async run(flags) {
      const dryRun = flags['dry-run'] === true
      if (flags.prune && !flags.yes && !dryRun) {
        throw new Failure('usage', { message: 'Deleting cannot be undone: repeat with --yes, or look with --dry-run' })
      }
      const wanted = readWanted(flags.file)
      const api = connect(flags, terminal)
      const steps = planOf(wanted, await readPresent(api), flags.prune === true)
      for (const step of steps) {
        if (!dryRun) await take(api, step)
        if (!flags.json) await terminal.write(`${lineOf(step)}\n`)
      }
      if (flags.json) await terminal.write(`${JSON.stringify({ applied: !dryRun, steps })}\n`)
      else if (dryRun) terminal.note('Nothing was changed')
    },
  })

function readWanted(path: string): readonly Wanted[] {
  const parsed = fileSchema.safeParse(readStructuredFile(path))
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new Failure('usage', { message: `${path}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not valid'}` })
  }
  const names = parsed.data.policies.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new Failure('usage', { message: `${path} names the policy "${twice}" twice` })
  return parsed.data.policies
}

async function readPresent(api: Api): Promise<Present[]> {
  const found: Present[] = []
  let cursor: string | undefined
  do {
    const page = await api.json({ path: '/v1/policies', query: { cursor } }, pageSchema)
    found.push(...z.array(presentSchema).parse(page.policies))
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  return found
}

/** What has to be done, in the order of the file, deletions last. Throws `usage` where a policy is of another kind. */
export function planOf(wanted: readonly Wanted[], present: readonly Present[], prune: boolean): Step[] {
  const steps = wanted.map((body): Step => {
    const { name } = body
    const known = present.find((policy) => policy.name === name)
    if (known === undefined) return { action: 'create', name, body }
    if (known.kind !== body.kind) {
      throw new Failure('usage', { message: `The policy "${name}" is of kind ${known.kind}: delete it first` })
    }
    const changes = differencesOf(body, known)
    if (Object.keys(changes).length === 0) return { action: 'unchanged', name }
    return { action: 'update', name, id: known.id, version: known.version, changes }
  })
  const named = new Set(wanted.map(({ name }) => name))
  const gone = present.filter(({ name }) => !named.has(name))
  return prune ? [...steps, ...gone.map(({ id, name }): Step => ({ action: 'delete', name, id }))] : steps
}

function differencesOf(wanted: Wanted, present: Present): Record<string, { from: unknown; to: unknown }> {
  const changes: Record<string, { from: unknown; to: unknown }> = {}
  for (const [field, to] of Object.entries(wanted)) {
    const from = present[field]
    if (!(field === 'config' ? isWithin(to, from) : Bun.deepEquals(to, from))) changes[field] = { from, to }
  }
  return changes
}

/** Whether a config says nothing else than the present one, which holds the defaults too. */
const isWithin = (wanted: unknown, present: unknown): boolean =>
  isObject(wanted) && isObject(present)
    ? Object.entries(wanted).every(([name, value]) => Bun.deepEquals(value, present[name]))
    : Bun.deepEquals(wanted, present)

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

async function take(api: Api, step: Step): Promise<void> {
  if (step.action === 'create') {
    await api.json({ method: 'POST', path: '/v1/policies', body: step.body }, presentSchema)
  } else if (step.action === 'update') {
    const body = Object.fromEntries(Object.entries(step.changes).map(([field, { to }]) => [field, to]))
    const headers = { 'if-match': `"${step.version}"` }
    await api.json({ method: 'PATCH', path: `/v1/policies/${step.id}`, body, headers }, presentSchema)
  } else if (step.action === 'delete') {
    await api.json({ method: 'DELETE', path: `/v1/policies/${step.id}` }, presentSchema)
  }
}

const signs = { create: '+', update: '~', delete: '-', unchanged: '=' } as const

function lineOf(step: Step): string {
  const line = `${signs[step.action]} policy ${printable(step.name)}`
  if (step.action !== 'update') return line
  const changes = Object.entries(step.changes).map(
    ([field, { from, to }]) =>
      `    ${field}: ${printable(JSON.stringify(from ?? null))} -> ${printable(JSON.stringify(to))}`,
  )
  return [line, ...changes].join('\n')
}
