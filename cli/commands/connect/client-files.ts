/**
 * Writes what a recipe says into a client's own files, and takes it back.
 *
 * 1. `planWrite` reads each file and computes its new text; nothing is written. Where the command ran before, it begins
 *    from the file without that.
 * 2. `write` keeps a copy of each file that was there, beside it (`….before-gatehouse`), keeps the record of what it
 *    does, and replaces the files, each whole or not at all.
 * 3. `planUndo` puts back the copy where nobody has changed the file since; otherwise it takes back the members that still
 *    say what was written and leaves the rest, because people and clients write into these files as well.
 *
 * The record and the token's file (both 0600) lie in the folder `clients` of the user's configuration directory. A file
 * with a secret gets mode 0600; another keeps its mode. A symbolic link stays, and the file behind it changes.
 */
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import type { ClientFile, Recipe } from '../../../src/clients/recipe.ts'
import { Failure } from '../../../src/failure.ts'
import { configDirectory } from '../../command/session-file.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { changeText, readMembers } from './formats.ts'
import { changesBack, changesTo, type Undo, undoSchema } from './members.ts'

const recordSchema = z.strictObject({
  /** The token that the command made; null for one that was given. */
  token_id: z.string().nullable(),
  token_file: z.string().nullable(),
  files: z.array(
    z.strictObject({
      path: z.string(),
      /** The copy of what was there; null: there was no file. */
      backup: z.string().nullable(),
      /** SHA-256 of what was written. */
      written: z.string(),
      undo: z.array(undoSchema),
    }),
  ),
})
type Written = z.infer<typeof recordSchema>

/** One file before and after. Null: no file. */
export interface Step {
  path: string
  before: string | null
  after: string | null
}

interface WriteStep extends Step {
  /** The file without what the command wrote before; null: no file. */
  from: string | null
  after: string
  undo: Undo[]
}

/** Where the command keeps what it knows of a client, and the secret for clients that can read one from a file. */
export function clientPlace({ name }: Recipe, environment: Terminal['environment']) {
  const folder = join(configDirectory(environment), 'clients')
  return { record: join(folder, `${name}.json`), tokenFile: join(folder, `${name}.token`) }
}

type Place = ReturnType<typeof clientPlace>

/** The steps that write the files of a recipe. Throws `usage` for a file that is not of its format. */
export function planWrite(
  files: readonly ClientFile[],
  place: Place,
  environment: Terminal['environment'],
): WriteStep[] {
  const last = readRecord(place)
  return files.map((file) => {
    const path = pathOf(file, environment)
    const before = readText(path)
    const known = last?.files.find((each) => each.path === path)
    const from = known === undefined || before === null ? before : withoutChange(path, before, known)
    const { keeps = [], removes = [], stamps = [], text } = file
    const wanted = { members: readMembers(path, text), keeps, removes, stamps }
    const { changes, undo } = changesTo(path, readMembers(path, from ?? ''), wanted)
    return { path, before, from, after: changeText(path, from ?? '', changes, text), undo }
  })
}

/** Writes the files, and the secret where one of them refers to its file. Throws where a file is no longer as planned. */
export function write(
  steps: readonly WriteStep[],
  { place, token, tokenId }: { place: Place; token: string; tokenId: string | null },
): void {
  refuseChanged(steps)
  const last = readRecord(place)
  const holdsToken = steps.some(({ after }) => after.includes(place.tokenFile))
  const files = steps.map(({ path, from, after, undo }) => {
    const known = last?.files.find((each) => each.path === path)
    const backup = keepCopy(path, from, known?.backup ?? null)
    return { path, backup, written: hashOf(after), undo }
  })
  const others = (last?.files ?? []).filter((file) => !files.some(({ path }) => path === file.path))
  const tokenFile = holdsToken ? place.tokenFile : (last?.token_file ?? null)
  const record: Written = { token_id: tokenId, token_file: tokenFile, files: [...others, ...files] }
  replace(place.record, `${JSON.stringify(record, null, 2)}\n`, 0o600)
  if (holdsToken) replace(place.tokenFile, `${token}\n`, 0o600)
  for (const { path, after } of steps) replace(path, after, after.includes(token) ? 0o600 : null)
}

/** The token that the command made for this client before; null: none. */
export const formerToken = (place: Place): string | null => readRecord(place)?.token_id ?? null

interface UndoPlan {
  steps: Step[]
  /** The token that was made. */
  tokenId: string | null
  /** The secret's file where it stays; null: it goes, or there is none. */
  staysFile: string | null
}

/** What takes back what was written. Throws `usage` if nothing was. */
export function planUndo(recipe: Recipe, place: Place): UndoPlan {
  const record = readRecord(place)
  if (record === null) {
    throw new Failure('usage', { message: `connect ${recipe.name} has written nothing here that could be taken back` })
  }
  const steps = record.files.flatMap((file) => {
    const before = readText(file.path)
    return before === null ? [] : [{ path: file.path, before, after: withoutChange(file.path, before, file) }]
  })
  const { token_id: tokenId, token_file: tokenFile } = record
  return { steps, tokenId, staysFile: tokenFile !== null && namesFile(steps, tokenFile) ? tokenFile : null }
}

/** Whether a part that the user has changed, and that therefore stays, reads the secret from its file. */
const namesFile = (steps: readonly Step[], tokenFile: string): boolean =>
  steps.some(({ after }) => after?.includes(tokenFile))

/** Writes the steps and removes the copies and the record; the file of the secret too, unless a client still reads it. */
export function undo(steps: readonly Step[], place: Place): void {
  refuseChanged(steps)
  const record = readRecord(place)
  for (const { path, after } of steps) {
    const backup = record?.files.find((file) => file.path === path)?.backup ?? null
    const mode = backup !== null && existsSync(backup) ? statSync(backup).mode & 0o777 : null
    if (after === null) rmSync(path, { force: true })
    else replace(path, after, mode)
  }
  for (const { backup } of record?.files ?? []) if (backup !== null) rmSync(backup, { force: true })
  if (record?.token_file && !namesFile(steps, record.token_file)) rmSync(record.token_file, { force: true })
  rmSync(place.record, { force: true })
}

/** The text of a file as it would be had the command not written; null: no file. */
function withoutChange(path: string, text: string, { backup, written, undo: back }: Written['files'][number]) {
  const kept = hashOf(text) === written && backup !== null ? readText(backup) : null
  if (kept !== null) return kept
  if (hashOf(text) === written && backup === null) return null
  const { changes, frame } = changesBack(readMembers(path, text), back)
  const framed = changes.length === 0 ? text : changeText(path, text, changes, null)
  const bare = frame.length === 0 ? framed : changeText(path, framed, frame, null)
  if (backup !== null) return bare
  // A comment is the user's, and a client takes no file that has nothing else.
  return /^[\s{}\uFEFF]*$/.test(bare) ? null : framed
}

function pathOf({ path, movedBy, alternatives = [] }: ClientFile, environment: Terminal['environment']): string {
  const moved = movedBy && environment[movedBy.variable]
  const usual = moved ? join(moved, path.slice(movedBy.from.length)) : join(environment.HOME || homedir(), path)
  const others = alternatives.map((name) => join(dirname(usual), name))
  const found = [usual, ...others].find((each) => existsSync(each))
  if (found !== undefined) return realpathSync(found)
  for (const each of [usual, ...others]) refuseDeadLink(each)
  return usual
}

/** A link to nothing, as the file or as a folder above it: a file in its place would cut it. Throws `usage`. */
function refuseDeadLink(path: string): void {
  if (existsSync(path)) return
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) {
    throw new Failure('usage', {
      message: `${path} is a symbolic link to ${readlinkSync(path)}, which is not there, so nothing is written: make what it leads to, or remove the link, and repeat the command`,
    })
  }
  refuseDeadLink(dirname(path))
}

/** Throws `usage` where a file is not there as text: a folder, or closed to this user. */
function readText(path: string): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(path))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : ''
    if (code === 'ENOENT') return null
    const why = code === 'ERR_ENCODING_INVALID_ENCODED_DATA' || code === '' ? 'it is no UTF-8 text' : String(code)
    throw new Failure('usage', { message: `${path} cannot be read: ${why}`, cause: error })
  }
}

const realPath = (path: string): string => (existsSync(path) ? realpathSync(path) : path)

function readRecord({ record }: Place): Written | null {
  const text = readText(record)
  if (text === null) return null
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch {
    content = undefined
  }
  const parsed = recordSchema.safeParse(content)
  if (parsed.success) {
    // A folder above a new file may be a link: from the second run on the file is known by its own path.
    const files = parsed.data.files.map((file) => ({ ...file, path: realPath(file.path) }))
    return { ...parsed.data, files }
  }
  throw new Failure('usage', {
    message: `${record}, the record of what was written, is damaged: put the copies (….before-gatehouse) back by hand and remove it`,
  })
}

function refuseChanged(steps: readonly Step[]): void {
  const changed = steps.find(({ path, before }) => readText(path) !== before)
  if (changed === undefined) return
  throw new Failure('usage', {
    message: `${changed.path} was changed while the command waited, so nothing is written: repeat it`,
  })
}

/** Copies keep the mode and owner of their file. The copy of an earlier run takes the new text; no other file does. */
function keepCopy(path: string, text: string | null, last: string | null): string | null {
  if (text === null) return last
  if (last !== null && existsSync(last)) {
    replace(last, text, null)
    return last
  }
  const name = `${path}.before-gatehouse`
  const numbered = Array.from({ length: 100 }, (_, index) => (index === 0 ? name : `${name}.${index}`))
  const copy = numbered.find((each) => !existsSync(each))
  if (copy === undefined) throw new Failure('usage', { message: `Remove old copies of ${path} (….before-gatehouse)` })
  replace(copy, text, statSync(path).mode & 0o777)
  return copy
}

/** Whole or not at all, and never for a moment more open than it will be. Null: the mode that the file has. */
function replace(path: string, text: string, mode: number | null): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const present = existsSync(path) ? statSync(path) : null
    const next = `${path}.${process.pid}.next`
    rmSync(next, { force: true })
    writeFileSync(next, text, { mode: 0o600, flag: 'wx' })
    if (present !== null && present.uid !== process.getuid?.()) chownSync(next, present.uid, present.gid)
    chmodSync(next, mode ?? (present === null ? 0o600 : present.mode & 0o777))
    renameSync(next, path)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    const message = `${path} cannot be written: ${code}. What was written before it, --undo takes back`
    throw new Failure('output_unwritable', { message, cause: error })
  }
}

const hashOf = (text: string): string => new Bun.CryptoHasher('sha256').update(text).digest('hex')
