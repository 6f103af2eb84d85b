/** How values are written: in the reader's language, with figures that line up. */

import { language } from './language.ts'

const whole = new Intl.NumberFormat(language)
const compact = new Intl.NumberFormat(language, { notation: 'compact', maximumFractionDigits: 1 })
const dollars = new Intl.NumberFormat(language, { style: 'currency', currency: 'USD' })
const dollarsTo = (digits: Intl.NumberFormatOptions) =>
  new Intl.NumberFormat(language, { style: 'currency', currency: 'USD', ...digits })
const smallDollars = dollarsTo({ minimumFractionDigits: 4, maximumFractionDigits: 4 })
const smallerDollars = dollarsTo({ minimumFractionDigits: 6, maximumFractionDigits: 6 })
/** The least that is told from nothing: a millionth of a dollar. */
const leastDollars = 0.000001
const instant = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' })
const time = new Intl.DateTimeFormat(language, { timeStyle: 'medium' })
const shortDate = new Intl.DateTimeFormat(language, {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
})
const timeOfDay = new Intl.DateTimeFormat(language, { hour: 'numeric', minute: '2-digit' })
const dayOfMonth = new Intl.DateTimeFormat(language, { month: 'short', day: 'numeric' })
const relative = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' })

export const number = (value: number | null | undefined): string => (value == null ? '–' : whole.format(value))

export const shortNumber = (value: number): string => (value < 10_000 ? whole.format(value) : compact.format(value))

/** US dollars; smaller amounts have two more decimals, then four, so that those of one size line up, and never more. */
export function money(value: number | null | undefined): string {
  if (value == null) return '–'
  const size = Math.abs(value)
  if (size === 0 || size >= 0.1) return dollars.format(value)
  if (value > 0 && value < leastDollars) return `<${smallerDollars.format(leastDollars)}`
  return (size >= 0.01 ? smallDollars : smallerDollars).format(value)
}

export const percent = (share: number): string => `${Math.round(share * 100)} %`

export function milliseconds(value: number | null | undefined): string {
  if (value == null) return '–'
  if (value > 0 && value < 1) return `${value.toFixed(2)} ms`
  if (value < 10) return `${Math.round(value * 10) / 10} ms`
  return value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(value < 10_000 ? 2 : 1)} s`
}

export const fullTime = (at: string | number): string => instant.format(new Date(at))

const apiInstant = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g

/** A sentence of the API, with its instants as the console writes them. */
export const withTimes = (text: string): string => text.replaceAll(apiInstant, fullTime)

export const clockTime = (at: string | number): string => time.format(new Date(at))
export const dateAndTime = (at: string | number): string => shortDate.format(new Date(at))

const monthAndYear = new Intl.DateTimeFormat(language, { month: 'long', year: 'numeric', timeZone: 'UTC' })

/** `2026-11` as people write it: `November 2026`. */
export const monthTitle = (month: string): string => monthAndYear.format(new Date(`${month}-01T00:00:00Z`))

/** What stands below the axis of a chart, for instants in order, in seconds: times of day, the day where one begins. */
export function axisTimes(instants: readonly number[], stepSeconds: number): string[] {
  const days = instants.map((at) => dayOfMonth.format(at * 1000))
  if (stepSeconds >= 86_400) return days
  return instants.map((at, index) => {
    const time = timeOfDay.format(at * 1000)
    return days[index] === days[index - 1] ? time : `${time}\n${days[index]}`
  })
}

const units = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const

/** `3 hours ago`, `in 2 days`. */
export function ago(at: string | number, now = Date.now()): string {
  const seconds = (new Date(at).getTime() - now) / 1000
  const found = units.find(([, length]) => Math.abs(seconds) >= length)
  if (found === undefined) return Math.abs(seconds) < 5 ? 'just now' : relative.format(Math.round(seconds), 'second')
  return relative.format(Math.round(seconds / found[1]), found[0])
}

/** The same for what is known to the minute only: `about 3 minutes ago`. */
export function aboutAgo(at: string | number, now = Date.now()): string {
  const isRecent = Math.abs(now - new Date(at).getTime()) < 120_000
  return isRecent ? 'in the last two minutes' : `about ${ago(at, now)}`
}

const abbreviations: Readonly<Record<string, string>> = {
  pii: 'PII',
  json: 'JSON',
  ssn: 'SSN',
  iban: 'IBAN',
  ip: 'IP',
  id: 'id',
  url: 'URL',
  urls: 'URLs',
  uris: 'URIs',
  api: 'API',
  mcp: 'MCP',
  smtp: 'SMTP',
  tls: 'TLS',
  oauth: 'OAuth',
  oidc: 'OIDC',
  scim: 'SCIM',
  jwt: 'JWT',
  jwks: 'JWKS',
  cel: 'CEL',
  aws: 'AWS',
  usd: 'USD',
  http: 'HTTP',
  otlp: 'OTLP',
  s3: 'S3',
  ca: 'CA',
  openai: 'OpenAI',
}

/** `gateway_runtime` as people write it: `Gateway runtime`. */
export function humanize(name: string): string {
  const text = name
    .split(/[_.\s-]+/)
    .map((word) => abbreviations[word] ?? word)
    .join(' ')
    .trim()
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** The end of an id, enough to tell records apart at a glance; version 7 ids begin alike. */
export const shortId = (id: string): string => `…${id.slice(-8)}`

/** `3 tokens`, `1 token`. */
export const countNoun = (count: number, noun: string): string => `${number(count)} ${noun}${count === 1 ? '' : 's'}`
