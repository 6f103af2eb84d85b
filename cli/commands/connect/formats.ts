/**
 * Changes members of a client's file and keeps the rest of it: other members, their order, and comments. One row for
 * each format. Every result is parsed again and must say what the change says; otherwise the file is refused.
 */
import { parse as parseToml, patch as patchToml } from '@decimalturn/toml-patch'
import {
  applyEdits,
  findNodeAtLocation,
  modify,
  type ParseError,
  parse as parseJson,
  parseTree,
  visit,
} from 'jsonc-parser'
import { CST, Document, Lexer, LineCounter, parseDocument } from 'yaml'
import { z } from 'zod'
import { environmentFile } from '../../../src/clients/recipe.ts'
import { Failure } from '../../../src/failure.ts'
import { type Change, changed, type Members } from './members.ts'

interface Format {
  /** The file's members. Throws a `SyntaxError` that quotes nothing of the file, which may hold secrets. */
  parse(text: string): unknown
  /**
   * The file with the changes; `added` is the text that the changes were read from, for a format that can take it over.
   */
  change(text: string, changes: readonly Change[], added: string | null): string
  /** The comments of a file that a change may lose. */
  comments(text: string): string[]
}

const jsonFormat: Format = {
  parse(text) {
    if (text.trim() === '') return {}
    const errors: ParseError[] = []
    const value: unknown = parseJson(text, errors, { allowTrailingComma: true })
    const [error] = errors
    if (error !== undefined) throw new SyntaxError(lineAt(text, error.offset))
    return value
  },
  change: (text, changes) => changes.reduce(changeJson, text.trim() === '' ? '{}\n' : text),
  comments(text) {
    const found: string[] = []
    visit(text, { onComment: (offset, length) => found.push(text.slice(offset, offset + length)) })
    return found
  },
}

/**
 * Where an object spans lines, a new member gets lines of its own and no other line changes: the library's formatting
 * would touch the lines beside it. An object on one line is formatted by the library.
 */
function changeJson(text: string, { path, value }: Change): string {
  const unit = /^([ \t]+)\S/m.exec(text)?.[1] ?? '  '
  const tree = parseTree(text, [], { allowTrailingComma: true })
  const node = (depth: number) => tree && findNodeAtLocation(tree, path.slice(0, depth))
  const depth = path.findLastIndex((_, index) => node(index + 1) !== undefined) + 1
  const holder = node(depth)
  const spansLines = holder !== undefined && text.slice(holder.offset, holder.offset + holder.length).includes('\n')
  if (value !== undefined && depth < path.length && !spansLines) {
    const formattingOptions = { insertSpaces: !unit.startsWith('\t'), tabSize: unit.length }
    return applyEdits(text, modify(text, [...path], value, { formattingOptions }))
  }
  const level = `\n${unit.repeat(depth + 1)}`
  const edits = modify(text, [...path], value, {}).map((edit) => {
    const [, before = '', name = '', written = '', after = ''] = insertion.exec(edit.content) ?? []
    if (value === undefined || depth === path.length) return edit
    const lines = JSON.stringify(JSON.parse(written), null, unit).replaceAll('\n', level)
    return { ...edit, content: `${before}${level}${name}${lines}${after}` }
  })
  return applyEdits(text, edits)
}

/** What the library inserts: a member or an entry, and the comma before or after it. */
const insertion = /^(,?)("(?:[^"\\]|\\.)*": )?(.*?)(,?)$/s

const yamlFormat: Format = {
  parse(text) {
    const document = readYaml(text)
    return document.contents === null ? {} : document.toJS()
  },
  change(text, changes) {
    const read = readYaml(text)
    const document = read.contents === null ? new Document({}) : read
    if (read.contents === null) document.commentBefore = read.commentBefore
    for (const { path, value } of changes) {
      if (value === undefined) document.deleteIn(path)
      // A plain value goes into the node that is there, whose comment stays.
      else document.setIn(path, typeof value === 'object' ? document.createNode(value) : value)
    }
    return document.toString({ lineWidth: 0, flowCollectionPadding: /[\s,:][[{] \S/.test(text) })
  },
  comments(text) {
    const tokens = [...new Lexer().lex(text)]
    return tokens.filter((token, index) => token.startsWith('#') && tokens[index - 1] !== CST.SCALAR)
  },
}

function readYaml(text: string) {
  const document = parseDocument(text, { lineCounter: new LineCounter(), prettyErrors: true })
  const [error] = document.errors
  if (error !== undefined) throw new SyntaxError(`line ${error.linePos?.[0].line ?? 1}`)
  return document
}

/** A string is matched first, because a # in it begins no comment. */
const tomlStringOrComment = /"""(?:[^\\]|\\[\s\S])*?"""|'''[\s\S]*?'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|(#.*)/g

const tomlFormat: Format = {
  parse(text) {
    try {
      return parseToml(text)
    } catch (error) {
      const line = error instanceof Error && 'line' in error ? Number(error.line) : Number.NaN
      throw new SyntaxError(Number.isNaN(line) ? '' : `line ${line}`)
    }
  },
  /**
   * New tables are taken over as text at the end, because the library would write each in one line. Where the file has
   * the table above them in one line, they cannot follow it, and go into it.
   */
  change(text, changes, added) {
    const members = z.record(z.string(), z.unknown()).parse(parseToml(text))
    const tables = added === null ? '' : (/^\[[\s\S]*/m.exec(added)?.[0] ?? '')
    const above = new Set(changes.flatMap(({ path, value }) => (path.length > 1 && value !== undefined ? path[0] : [])))
    const isInLine = [...above].some((name) => new RegExp(`^${name}\\s*=`, 'm').test(text))
    if (tables === '' || isInLine) return patchToml(text, changed(members, changes))
    const others = changes.filter(({ path, value }) => path.length === 1 || value === undefined)
    const patched = patchToml(text, changed(members, others))
    return `${patched.trimEnd()}${patched.trim() === '' ? '' : '\n\n'}${tables}`
  },
  comments: (text) => [...text.matchAll(tomlStringOrComment)].flatMap(([, comment]) => comment ?? []),
}

const assignment = /^(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/

const environmentFormat: Format = {
  parse: (text) =>
    Object.fromEntries(
      text.split('\n').flatMap((line) => {
        const [, name, value = ''] = assignment.exec(line) ?? []
        return name === undefined ? [] : [[name, /^(["']).*\1$/.test(value) ? value.slice(1, -1) : value]]
      }),
    ),
  change(text, changes) {
    return changes.reduce((now, { path: [name], value }) => {
      const kept = now.split('\n')
      const at = kept.findLastIndex((line) => assignment.exec(line)?.[1] === name)
      const line = value === undefined ? null : environmentFile({ [String(name)]: String(value) }).trimEnd()
      if (at >= 0) return kept.toSpliced(at, 1, ...(line === null ? [] : [line])).join('\n')
      return line === null ? now : `${now}${now === '' || now.endsWith('\n') ? '' : '\n'}${line}\n`
    }, text)
  },
  // A change of one line loses no other.
  comments: () => [],
}

const formats: Readonly<Record<string, Format>> = {
  json: jsonFormat,
  jsonc: jsonFormat,
  yaml: yamlFormat,
  yml: yamlFormat,
  toml: tomlFormat,
  env: environmentFormat,
}

const formatNames: Readonly<Record<string, string>> = { env: 'a .env file', yml: 'YAML' }

const endingOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1)

const formatOf = (path: string): Format => {
  const format = formats[endingOf(path)]
  if (format === undefined) throw new Failure('internal', { message: `No format is known for ${path}` })
  return format
}

/** Some editors begin a UTF-8 file with it. It stays. */
const byteOrderMark = /^\uFEFF/

/** The members of a file; of no text none. Throws `usage` where it is not of its format. */
export function readMembers(path: string, text: string): Members {
  const ending = endingOf(path)
  const name = formatNames[ending] ?? ending.toUpperCase()
  let value: unknown
  try {
    value = formatOf(path).parse(text.replace(byteOrderMark, ''))
  } catch (error) {
    const where = error instanceof SyntaxError && error.message !== '' ? ` (${error.message})` : ''
    throw new Failure('usage', {
      message: `${path} is not valid ${name}${where}, so it is not changed: mend it, or move it away, and repeat the command`,
    })
  }
  const members = z.record(z.string(), z.unknown()).safeParse(value)
  if (members.success) return members.data
  throw new Failure('usage', { message: `${path} holds no members at its top, so it is not changed: move it away` })
}

/**
 * The file's text with the changes, which were read from `added`; that text itself where the file has none. Throws
 * `usage` where the format's tool cannot say them.
 */
export function changeText(path: string, text: string, changes: readonly Change[], added: string | null): string {
  const mark = byteOrderMark.exec(text)?.[0] ?? ''
  const bare = text.slice(mark.length)
  if (bare.trim() === '' && added !== null) return mark + added
  const wanted = changed(readMembers(path, text), changes)
  const format = formatOf(path)
  try {
    const made = withComments(format, bare, format.change(bare, changes, added))
    if (Bun.deepEquals(format.parse(made), wanted)) return mark + made
  } catch {
    // The same answer as to a result that says something else.
  }
  throw new Failure('usage', { message: `${path} has a form that cannot be changed safely: change it by hand` })
}

/** A comment beside a member goes with it in most tools. It is the user's, so it moves to the end. */
function withComments({ comments }: Format, before: string, after: string): string {
  const left = comments(after) ?? []
  const lost = (comments(before) ?? []).filter((comment) => {
    const at = left.indexOf(comment)
    if (at >= 0) left.splice(at, 1)
    return at === -1
  })
  return lost.length === 0 ? after : `${after.trimEnd()}\n${lost.join('\n')}\n`
}

const lineAt = (text: string, offset: number): string => `line ${text.slice(0, offset).split('\n').length}`
