/** Reads what `-f` names: a file, the files of a folder, or standard input. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { Failure } from '../../../src/failure.ts'
import { unreadableBecause } from '../../command/settings.ts'
import { type Source, yamlDocuments } from './documents.ts'
import { tomlDocument } from './toml-document.ts'

const endings = ['.yaml', '.yml', '.json', '.toml']

/** Throws `usage` that names file, line and column of what cannot be read. */
export async function readSources(name: string, readInput: () => Promise<Uint8Array>): Promise<Source[]> {
  if (name === '-') return parsed('-', await readInput())
  return filesOf(name).flatMap((path) => parsed(path, readBytes(path)))
}

/** Files of a folder in the order of their names. A ConfigMap's own links begin with two dots. */
function filesOf(name: string): string[] {
  if (!isFolder(name)) {
    if (endings.includes(extname(name).toLowerCase())) return [name]
    throw new Failure('usage', {
      message: `${name}: name the file .yaml, .yml, .json or .toml, so that its format is known`,
    })
  }
  const files = readdirSync(name)
    .filter((entry) => !entry.startsWith('.') && endings.includes(extname(entry).toLowerCase()))
    .toSorted()
    .map((entry) => join(name, entry))
    .filter((path) => !isFolder(path))
  if (files.length > 0) return files
  throw new Failure('usage', { message: `The folder ${name} has no file that ends with ${endings.join(', ')}` })
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

function readBytes(path: string): Uint8Array {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new Failure('usage', { message: `${path} cannot be read: ${unreadableBecause(error)}`, cause: error })
  }
}

function parsed(name: string, bytes: Uint8Array): Source[] {
  const text = textOf(name, bytes)
  const isToml = name === '-' ? beginsAsToml(text) : extname(name).toLowerCase() === '.toml'
  return isToml ? [tomlDocument(name, text)] : yamlDocuments(name, text)
}

/** Standard input has no ending that says its format. No file of YAML or JSON begins with `[[list]]` or `name =`. */
function beginsAsToml(text: string): boolean {
  const first = text.split('\n').find((line) => !/^\s*(#|$)/.test(line)) ?? ''
  return /^\s*(\[\[?[\w.\s-]+\]\]?\s*(#.*)?|[\w.-]+\s*=.*)$/.test(first.trimEnd())
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })
const replacing = new TextDecoder('utf-8', { ignoreBOM: true })
const replacement = '\ufffd'

/** Throws `usage` with the place of the first byte that is no UTF-8. */
function textOf(name: string, bytes: Uint8Array): string {
  try {
    return strictUtf8.decode(bytes)
  } catch (cause) {
    const before = replacing.decode(bytes)
    for (let index = before.indexOf(replacement); index >= 0; index = before.indexOf(replacement, index + 1)) {
      const offset = Buffer.byteLength(before.slice(0, index))
      // The character itself may stand in a text.
      if (Buffer.from(bytes.subarray(offset, offset + 3)).toString() === replacement && bytes[offset] === 0xef) continue
      const lines = before.slice(0, index).split('\n')
      const place = `${name}:${lines.length}:${(lines.at(-1) ?? '').length + 1}`
      const byte = `0x${(bytes[offset] ?? 0).toString(16).padStart(2, '0')}`
      const message = `${place}: The byte ${byte} at ${offset} is no UTF-8: save the file as UTF-8`
      throw new Failure('usage', { message, cause })
    }
    throw cause
  }
}
