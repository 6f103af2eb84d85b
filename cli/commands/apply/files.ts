/**
 * Reads what `-f` names: a file, the files of a folder, or standard input. YAML and JSON keep the position of every
 * value, so that a fault is shown with its line and column.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { isMap, isNode, isPair, isScalar, LineCounter, parseAllDocuments } from 'yaml'
import { Failure } from '../../../src/failure.ts'

export type Path = readonly (string | number)[]

/** One document: an object of lists. A file of YAML may hold several, with `---` between them. */
export interface Source {
  /** As it was named; `-` is standard input. */
  readonly name: string
  readonly content: unknown
  /** `LINE:COLUMN` of a value, or of the name of a member; of the nearest value around it, where there is none. */
  position(path: Path, ofName?: boolean): string | null
}

const endings = ['.yaml', '.yml', '.json', '.toml']

/** Throws `usage` that names file, line and column of what cannot be read. */
export async function readSources(name: string, readInput: () => Promise<string>): Promise<Source[]> {
  if (name === '-') return parsed('-', await readInput())
  return filesOf(name).flatMap((path) => parsed(path, readText(path)))
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

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'it is no text'
    throw new Failure('usage', { message: `${path} cannot be read: ${reason}`, cause: error })
  }
}

function parsed(name: string, text: string): Source[] {
  if (extname(name).toLowerCase() === '.toml') return [{ name, content: fromToml(name, text), position: () => null }]
  const lines = new LineCounter()
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return `${line}:${col}`
  }
  const documents = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })
  if (documents.length === 0) return [{ name, content: null, position: () => null }]
  return documents.map((document): Source => {
    const [fault] = document.errors
    if (fault !== undefined) {
      throw new Failure('usage', { message: `${name}:${at(fault.pos[0])}: ${fault.message}`, cause: fault })
    }
    return {
      name,
      content: document.toJS(),
      position(path, ofName = false) {
        for (let length = path.length; length >= 0; length -= 1) {
          const node = document.getIn(path.slice(0, length), true)
          const named =
            length === path.length && ofName ? nameNode(document.getIn(path.slice(0, -1), true), path.at(-1)) : null
          const range = named ?? (isNode(node) ? node.range : null)
          if (range !== null && range !== undefined) return at(range[0])
        }
        return null
      },
    }
  })
}

function nameNode(around: unknown, name: string | number | undefined) {
  if (!isMap(around)) return null
  const pair = around.items.find(
    (item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(name),
  )
  return isScalar(pair?.key) ? (pair.key.range ?? null) : null
}

function fromToml(name: string, text: string): unknown {
  try {
    return Bun.TOML.parse(text)
  } catch (error) {
    throw new Failure('usage', { message: `${name} is not valid TOML`, cause: error })
  }
}
