/**
 * Parses the text of a file into documents that know where every value stands, so that a fault is shown with its line
 * and column. YAML and JSON.
 */
import {
  type Document,
  isMap,
  isNode,
  isPair,
  isScalar,
  Lexer,
  LineCounter,
  Parser,
  parseAllDocuments,
  visit,
} from 'yaml'
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

/** Throws `usage` that names file, line and column of what cannot be parsed. */
export function yamlDocuments(name: string, text: string): Source[] {
  const lines = new LineCounter()
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return `${line}:${col}`
  }
  requireShallow(name, text)
  const documents = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false, merge: true })
  if (documents.length === 0) return [{ name, content: null, position: () => null }]
  return documents.map((document): Source => {
    const fault = document.errors[0] ?? unknownTag(document) ?? brokenAlias(document)
    if (fault !== undefined) {
      throw new Failure('usage', { message: `${name}:${at(fault.pos[0])}: ${fault.message}`, cause: fault })
    }
    return {
      name,
      content: contentOf(document, name),
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

/** No record is nested so deep. */
const mostLevels = 100

/** Throws `usage` for a file that is nested deeper: the library takes time with the square of the depth. */
function requireShallow(name: string, text: string): void {
  const lines = new LineCounter()
  const parser = new Parser(lines.addNewLine)
  lines.addNewLine(0)
  for (const lexeme of new Lexer().lex(text)) {
    for (const _ of parser.next(lexeme)) {
      // Only the depth is looked at here.
    }
    if (parser.stack.length <= mostLevels) continue
    const { line, col } = lines.linePos(parser.offset)
    throw new Failure('usage', { message: `${name}:${line}:${col}: It is nested more than ${mostLevels} levels deep` })
  }
}

interface Fault {
  message: string
  pos: readonly [number, ...number[]]
}

/** The library only warns of a tag, such as `!env`, and takes the value without it. */
function unknownTag({ warnings }: Document.Parsed): Fault | undefined {
  const [warning] = warnings
  if (warning === undefined) return undefined
  return { pos: warning.pos, message: `${warning.message}: write the value without it` }
}

/** The first `*name` that stands for nothing, or for what it is itself a part of. */
function brokenAlias(document: Document.Parsed): Fault | undefined {
  const found: Fault[] = []
  visit(document, {
    Alias(_, alias, around) {
      const target = alias.resolve(document)
      const pos = [alias.range?.[0] ?? 0] as const
      if (target === undefined)
        found.push({ pos, message: `No value before it is marked &${alias.source}, so *${alias.source} names nothing` })
      else if (around.some((each) => each === target))
        found.push({ pos, message: `*${alias.source} names a value that it is a part of` })
      return found.length > 0 ? visit.BREAK : undefined
    },
  })
  return found[0]
}

/** Aliases of aliases can stand for more than memory holds: the library counts them. It knows no place of its errors. */
function contentOf(document: Document.Parsed, name: string): unknown {
  try {
    return document.toJS()
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    const isTooMuch = /alias count/i.test(why)
    const message = `${name}: ${isTooMuch ? 'its aliases stand for too much: write less of it by *name' : why}`
    throw new Failure('usage', { message, cause })
  }
}

function nameNode(around: unknown, name: string | number | undefined) {
  if (!isMap(around)) return null
  const pair = around.items.find(
    (item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(name),
  )
  return isScalar(pair?.key) ? (pair.key.range ?? null) : null
}
