/**
 * `apply -f FILE|DIR|-` changes an installation to match files. Each record is identified by its name: a missing one is
 * created, a different one is changed, and fields that the file leaves out become those of a new record, except
 * secrets. Nothing else is touched, unless `--prune` asks to delete records that a list of the files does not name.
 * All entries are checked, by the API's own rules, before anything is changed.
 */
import { defineCommand } from 'citty'
import { Failure } from '../../../src/failure.ts'
import type { Api } from '../../command/api.ts'
import { connect, recordFlags } from '../../command/record.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { paintFor, summaryOf, textOf } from './difference.ts'
import type { Source } from './documents.ts'
import { readSources } from './files.ts'
import { Installation } from './installation.ts'
import { kinds } from './kinds/kinds.ts'
import { planOf, type Step } from './plan.ts'
import { fileSchema } from './schema.ts'
import { SecretReader } from './secret-reference.ts'
import { send } from './send.ts'
import { wantedOf } from './wanted.ts'
import { watch } from './watch.ts'

export const applyCommand = (terminal: Terminal, readInput = () => Bun.stdin.bytes()) =>
  defineCommand({
    meta: {
      description: `Make records be what files say, and what they leave out as in a new record: YAML, TOML or JSON with lists named ${kinds.map(({ member }) => member).join(', ')}`,
    },
    args: {
      file: {
        type: 'string',
        alias: 'f',
        description: 'A file, a folder of files, or - for stdin: YAML, JSON or TOML',
        valueHint: 'FILE',
      },
      'dry-run': {
        type: 'boolean',
        description: 'Only show what would change, or what the control plane would refuse',
      },
      secrets: { type: 'boolean', description: 'Send secrets too where nothing else differs: theirs are not compared' },
      prune: { type: 'boolean', description: 'Delete what a list of the files does not name' },
      label: {
        type: 'string',
        description: 'Mark the records of the files with it; --prune then deletes what carries it and no file names',
        valueHint: 'LABEL',
      },
      yes: { type: 'boolean', description: 'With --prune: really delete them' },
      watch: { type: 'boolean', description: 'Go on, and apply again whenever the files change' },
      schema: { type: 'boolean', description: 'Print the JSON schema of files, for editors, and do nothing else' },
      ...recordFlags,
    },
    async run({ args }) {
      if (args.schema) return await terminal.write(`${JSON.stringify(fileSchema(), null, 2)}\n`)
      const dryRun = args['dry-run'] === true
      if (args.file === undefined)
        throw new Failure('usage', { message: 'Name what is to be applied: -f FILE, -f FOLDER or -f -' })
      if (args.prune && !args.yes && !dryRun) {
        throw new Failure('usage', { message: 'Deleting cannot be undone: repeat with --yes, or look with --dry-run' })
      }
      const { file } = args
      if (args.label !== undefined && !labelForm.test(args.label)) {
        throw new Failure('usage', { message: '--label takes 1 to 63 letters, digits and . _ / -' })
      }
      const read = () => readSources(file, readInput)
      const once = async () => {
        const { label = null } = args
        const options = { dryRun, prune: args.prune === true, label, secrets: args.secrets === true, terminal }
        const steps = await apply(await read(), connect(args, terminal), options)
        await show(steps, { dryRun, json: args.json === true, onlyChanges: args.watch === true }, terminal)
      }
      if (!args.watch) return await once()
      if (dryRun || file === '-')
        throw new Failure('usage', { message: '--watch applies files: leave --dry-run and - out' })
      await watch({ read, apply: once, terminal, stopped: stopSignal() })
    },
  })

const labelForm = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/

interface ApplyOptions {
  dryRun: boolean
  prune: boolean
  label: string | null
  secrets: boolean
  terminal: Terminal
}

async function apply(
  sources: readonly Source[],
  api: Api,
  { dryRun, prune, label, secrets, terminal }: ApplyOptions,
): Promise<readonly Step[]> {
  const { steps, labels } = await planOf(wantedOf(sources), new Installation(api), { prune, label, secrets })
  // A secret that cannot be read is found before anything is changed.
  const reader = new SecretReader(terminal)
  const prepared = []
  for (const step of steps) prepared.push({ step, calls: await step.calls(reader) })
  await send(api, prepared, { labels, dryRun })
  return steps
}

function stopSignal(): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort())
  return stop.signal
}

async function show(
  all: readonly Step[],
  { dryRun, json, onlyChanges }: { dryRun: boolean; json: boolean; onlyChanges: boolean },
  terminal: Terminal,
): Promise<void> {
  const steps = onlyChanges ? all.filter(({ action }) => action !== 'unchanged') : all
  if (json) {
    const shown = steps.map(({ action, kind, name, id, changes }) => ({ record: kind.one, action, name, id, changes }))
    return await terminal.write(`${JSON.stringify({ applied: !dryRun, steps: shown })}\n`)
  }
  const paint = paintFor(terminal)
  await terminal.write(steps.map((step) => textOf(step, paint, dryRun)).join(''))
  if (dryRun) terminal.note(`${summaryOf(steps, false)}. Nothing was changed`)
  else if (terminal.interactive) terminal.note(summaryOf(steps, true))
}
