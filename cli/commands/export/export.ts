/**
 * `export` writes what exists as files of `apply` say it: applying them changes nothing. No secret can be read back, so
 * each stands as a reference to a variable of a name that tells what it is for.
 */
import { defineCommand } from 'citty'
import { stringify } from 'yaml'
import { Failure } from '../../../src/failure.ts'
import type { Api } from '../../command/api.ts'
import { connect, recordFlags } from '../../command/record.ts'
import { readList } from '../../command/values.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { Installation } from '../apply/installation.ts'
import { entrySchema, type Kind, presentEntry, type Shown, whole } from '../apply/kind.ts'
import { kinds } from '../apply/kinds/kinds.ts'
import { type Entry, replaced } from '../apply/places.ts'

export const exportCommand = (terminal: Terminal) =>
  defineCommand({
    meta: {
      description:
        'Write what exists as a file for apply, with references to variables in place of secrets: applying it changes nothing',
    },
    args: {
      output: { type: 'enum', alias: 'o', options: ['yaml', 'json'], default: 'yaml', description: 'The format' },
      only: { type: 'string', description: 'Only these lists, with commas between them', valueHint: 'LIST' },
      ...recordFlags,
    },
    async run({ args }) {
      const chosen = args.only === undefined ? kinds : chosenKinds(readList('--only', args.only))
      const installation = new Installation(connect(args, terminal))
      await installation.load(chosen)
      const lists = chosen.map((kind) => [
        kind.member,
        installation.records(kind).map((record) => exported(kind, record, installation)),
      ])
      const filled = Object.fromEntries(lists.filter(([, list]) => list?.length !== 0))
      const isJson = args.json === true || args.output === 'json'
      await terminal.write(
        isJson ? `${JSON.stringify(filled, null, 2)}\n` : heading + stringify(filled, { lineWidth: 0 }),
      )
    },
  })

/** One record as a file for apply. */
export async function exportedRecord(kind: Kind, record: Shown, api: Api): Promise<string> {
  const installation = new Installation(api)
  await installation.load([kind])
  return heading + stringify({ [kind.member]: [exported(kind, record, installation)] }, { lineWidth: 0 })
}

const heading =
  '# What gatehouse export found. Secrets are not in it: fill the variables that it names, or name other places.\n'

function chosenKinds(names: readonly string[]): Kind[] {
  return names.map((name) => {
    const kind = kinds.find(({ member }) => member === name)
    if (kind !== undefined) return kind
    const members = kinds.map(({ member }) => member).join(', ')
    throw new Failure('usage', { message: `--only: there is no list ${name}; there are ${members}` })
  })
}

/** A record as a file says it, without fields that are as in a new record. */
function exported(kind: Kind, record: Shown, installation: Installation): Entry {
  const present = presentEntry(kind, record, (path, id) => installation.nameOf(path, id))
  const fields = Object.entries(present).filter(([field, value]) => value !== null && !kind.unexported.includes(field))
  const name = kind.nameOf(record)
  const entry = { [kind.key]: name, ...Object.fromEntries(fields) }
  const needed = fields.filter(([field]) => kind.kept.includes(field) || !isUsual(kind, entry, field))
  return withReferences(kind, { [kind.key]: name, ...Object.fromEntries(needed) })
}

/** Whether a record has the same where the file leaves the field out. */
function isUsual(kind: Kind, entry: Entry, field: string): boolean {
  const { [field]: value, ...without } = withReferences(kind, entry)
  const parsed = kind.entry.safeParse(without)
  if (value === undefined || !parsed.success) return false
  try {
    return Bun.deepEquals(whole(kind, entrySchema.parse(parsed.data))[field], entry[field])
  } catch {
    return false
  }
}

/** `{ env: PROVIDER_OPENAI_API_KEY }` in place of a secret that is there. */
function withReferences(kind: Kind, entry: Entry): Entry {
  let referring: unknown = entry
  for (const { path, refersTo } of kind.places) {
    if (refersTo !== null) continue
    const names = [kind.one, String(entry[kind.key])]
    referring = replaced(referring, path, path, (_, at) => ({ env: variable([...names, ...at]) }))
  }
  return entrySchema.parse(referring)
}

const variable = (names: readonly string[]): string =>
  names
    .join('_')
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '_')
