/**
 * `apply -f FILE|DIR|-` changes an installation to match files. Each record is identified by its name: a missing one is
 * created, a different one is changed, and fields that the file leaves out become those of a new record, except
 * secrets. Nothing else is touched, unless `--prune` asks to delete records that a list of the files does not name.
 * All entries are checked, by the API's own rules, before anything is changed.
 */
import { defineCommand } from 'citty'
import { Failure } from '../../../src/failure.ts'
import { connect, recordFlags } from '../../command/record.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { paintFor, summaryOf, textOf } from './difference.ts'
import { readSources } from './files.ts'
import { Installation } from './installation.ts'
import { kinds } from './kinds/kinds.ts'
import { planOf, type Step } from './plan.ts'
import { fileSchema } from './schema.ts'
import { SecretReader } from './secret-reference.ts'
import { send } from './send.ts'
import { wantedOf } from './wanted.ts'

export const applyCommand = (terminal: Terminal, readInput = () => Bun.stdin.text()) =>
  defineCommand({
    meta: {
      description: `Make records be what files say, and what they leave out as in a new record: YAML, TOML or JSON with lists named ${kinds.map(({ member }) => member).join(', ')}`,
    },
    args: {
      file: { type: 'string', alias: 'f', description: 'A file, a folder of files, or - for stdin', valueHint: 'FILE' },
      'dry-run': { type: 'boolean', description: 'Only show what would change' },
      secrets: { type: 'boolean', description: 'Send secrets too where nothing else differs: theirs are not compared' },
      prune: { type: 'boolean', description: 'Delete what a list of the files does not name' },
      yes: { type: 'boolean', description: 'With --prune: really delete them' },
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
      const wish = wantedOf(await readSources(args.file, readInput))
      const api = connect(args, terminal)
      const options = { prune: args.prune === true, owned: null, secrets: args.secrets === true }
      const steps = await planOf(wish, new Installation(api), options)
      if (!dryRun) {
        // A secret that cannot be read is found before anything is changed.
        const secrets = new SecretReader(terminal)
        const prepared = []
        for (const step of steps) prepared.push({ step, calls: await step.calls(secrets) })
        await send(api, prepared)
      }
      await show(steps, { dryRun, json: args.json === true }, terminal)
    },
  })

async function show(
  steps: readonly Step[],
  { dryRun, json }: { dryRun: boolean; json: boolean },
  terminal: Terminal,
): Promise<void> {
  if (json) {
    const shown = steps.map(({ action, kind, name, id, changes }) => ({ record: kind.one, action, name, id, changes }))
    return await terminal.write(`${JSON.stringify({ applied: !dryRun, steps: shown })}\n`)
  }
  const paint = paintFor(terminal)
  await terminal.write(steps.map((step) => textOf(step, paint, dryRun)).join(''))
  if (dryRun) terminal.note(`${summaryOf(steps, false)}. Nothing was changed`)
  else if (terminal.interactive) terminal.note(summaryOf(steps, true))
}
