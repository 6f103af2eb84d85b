/** Fields of values that are typed as text: lists, numbers, maps of texts, and JSON for anything else. */
import { useState } from 'preact/hooks'
import { isObject } from '../../json-object.ts'
import { linesOf } from '../../lines.ts'
import { TextArea, TextField } from './field.tsx'

export interface TypedProps {
  value: unknown
  set(value: unknown): void
  required: boolean
  common: { label: string; hint: string | undefined; fault: string | null }
}

export function LinesField({ value, set, common, required }: TypedProps) {
  const [text, setText] = useState(Array.isArray(value) ? value.join('\n') : '')
  const take = (next: string) => {
    setText(next)
    const lines = linesOf(next)
    set(lines.length === 0 ? undefined : lines)
  }
  const hint = [common.hint, 'One per line'].filter(Boolean).join('. ')
  return <TextArea {...common} hint={hint} value={text} set={take} mono required={required} />
}

/** Numbers on one line: `50, 80, 100`. What is no number is sent as it is, and the API says what is wrong. */
export function NumbersField({ value, set, common, required }: TypedProps) {
  const [text, setText] = useState(Array.isArray(value) ? value.join(', ') : '')
  const take = (next: string) => {
    setText(next)
    const parts = next.split(/[\s,;]+/).filter(Boolean)
    set(parts.length === 0 ? undefined : parts.map((part) => (Number.isNaN(Number(part)) ? part : Number(part))))
  }
  const hint = [common.hint, 'Numbers, separated by commas'].filter(Boolean).join('. ')
  return <TextField {...common} hint={hint} value={text} set={take} required={required} />
}

/** A map of texts, one `name: value` a line. */
export function PairsField({ value, set, common, required }: TypedProps) {
  const [text, setText] = useState(
    isObject(value)
      ? Object.entries(value)
          .map(([name, one]) => `${name}: ${String(one)}`)
          .join('\n')
      : '',
  )
  const take = (next: string) => {
    setText(next)
    const pairs = linesOf(next).map((line) => {
      const [name = '', ...rest] = line.split(':')
      return [name.trim(), rest.join(':').trim()] as const
    })
    set(pairs.length === 0 ? undefined : Object.fromEntries(pairs))
  }
  const hint = [common.hint, 'One per line, as name: value'].filter(Boolean).join('. ')
  return <TextArea {...common} hint={hint} value={text} set={take} mono required={required} />
}

export function JsonField({ value, set, common, required }: TypedProps) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2))
  const [unreadable, setUnreadable] = useState(false)
  const take = (next: string) => {
    setText(next)
    try {
      set(next.trim() === '' ? undefined : JSON.parse(next))
      setUnreadable(false)
    } catch {
      // Half-typed JSON is none yet: the last that could be read stands.
      setUnreadable(true)
    }
  }
  const hint = [common.hint, 'As JSON'].filter(Boolean).join('. ')
  const fault = unreadable ? 'This is not valid JSON' : common.fault
  return <TextArea {...common} hint={hint} fault={fault} value={text} set={take} rows={4} mono required={required} />
}
