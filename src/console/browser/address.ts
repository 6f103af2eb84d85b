/**
 * The address bar is the console's memory: which screen, which record, filters, page and time range. What is not in it
 * is gone after a reload, and that is meant for secrets and for forms only.
 */
import { batch, computed, signal } from '@preact/signals'
import { installation } from './installation.ts'

export interface Address {
  /** Below the console's own path: `/tokens`. */
  path: string
  query: URLSearchParams
}

/** How one came to the screen that is shown: from which path, and whether by going back. Null on the first screen. */
export interface Arrival {
  from: string
  back: boolean
}

function read(): Address {
  const { pathname, search } = location
  const inside = pathname.startsWith(installation.path) ? pathname.slice(installation.path.length) : pathname
  return { path: inside === '' ? '/' : inside, query: new URLSearchParams(search) }
}

export const address = signal<Address>(read())

/** Changes with each change of the path. */
export const arrival = signal<Arrival | null>(null)

/** Shows what the address bar says. */
function show(back: boolean): void {
  const from = address.peek().path
  shownAddress = new URL(location.href)
  batch(() => {
    address.value = read()
    if (address.value.path !== from) arrival.value = { from, back }
  })
}

/** What names the time range that governs every chart and table; it goes along from screen to screen. */
const rangeNames = ['range', 'since', 'until']

/** A link to a place in the console, with the present time range unless it names one. */
export function href(path: string, query: Readonly<Record<string, string | null | undefined>> = {}): string {
  const wanted = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') wanted.set(name, value)
  }
  if (!rangeNames.some((name) => wanted.has(name))) {
    for (const name of rangeNames) {
      const value = address.value.query.get(name)
      if (value !== null) wanted.set(name, value)
    }
  }
  const text = wanted.toString()
  return `${installation.path}${path}${text === '' ? '' : `?${text}`}`
}

interface Warning {
  text: string
  /** The form that would be lost; null where the whole screen is meant. */
  form: Element | null
}

const warnings = new Set<Warning>()

/** Asks before one leaves the screen, until what it gives is called or somebody has left all the same. */
export function warnBeforeLeaving(text: string, form: Element | null = null): () => void {
  const own = { text, form }
  const asked = (event: BeforeUnloadEvent): void => event.preventDefault()
  warnings.add(own)
  addEventListener('beforeunload', asked)
  return () => {
    warnings.delete(own)
    removeEventListener('beforeunload', asked)
  }
}

/** Asks the first question; a yes answers the rest. */
function askedToLose(lost: readonly Warning[]): boolean {
  const [first] = lost
  if (first === undefined) return true
  const leaves = confirm(first.text)
  if (leaves) for (const warning of lost) warnings.delete(warning)
  return leaves
}

/** Whether a dialog may close: asks where a form in it has changes that are not saved. */
export const mayClose = (dialog: Element | null): boolean =>
  askedToLose([...warnings].filter(({ form }) => form !== null && dialog?.contains(form) === true))

/** What an address shows, without the time range, which changes charts and tables and no form. */
function placeOf({ pathname, searchParams }: URL): string {
  const query = new URLSearchParams(searchParams)
  for (const name of rangeNames) query.delete(name)
  return `${pathname}?${query}`
}

function mayLeave(to: URL): boolean {
  const sameScreen = to.pathname === shownAddress.pathname
  if (placeOf(to) === placeOf(shownAddress)) return true
  return askedToLose([...warnings].filter(({ form }) => !sameScreen || form !== null))
}

let shownAddress = new URL(location.href)

/** Goes to an address that `href` made. */
export function navigate(to: string, { replace = false, back = false } = {}): void {
  if (!mayLeave(new URL(to, location.href))) return
  if (replace) history.replaceState(null, '', to)
  else history.pushState(null, '', to)
  const before = address.peek().path
  show(back)
  if (address.value.path !== before) window.scrollTo(0, 0)
}

/** Changes parts of the query; a filter that changes goes back to the first page. */
export function setQuery(
  changes: Readonly<Record<string, string | null>>,
  { replace = false, keepPage = false }: { replace?: boolean; keepPage?: boolean } = {},
): void {
  const query = new URLSearchParams(address.value.query)
  if (!keepPage) query.delete('cursor')
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  navigate(`${installation.path}${address.value.path}${text === '' ? '' : `?${text}`}`, { replace })
}

/** One member of the query, or null. */
export const queryValue = (name: string): string | null => address.value.query.get(name)

/** Whether the query has any of these members. */
export const hasQuery = (names: readonly string[]): boolean => names.some((name) => queryValue(name) !== null)

export const path = computed(() => address.value.path)

/** Makes links within the console change the address without a new page; others stay links. */
export function followLinks(): void {
  addEventListener('popstate', () => {
    if (!mayLeave(new URL(location.href))) {
      // The browser has gone already: the address goes back to what is shown.
      history.pushState(null, '', shownAddress)
      return
    }
    show(true)
  })
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || link.target !== '' || link.hasAttribute('download')) return
    const to = new URL(link.href)
    const within = to.origin === location.origin && `${to.pathname}/`.startsWith(`${installation.path}/`)
    if (!within || (to.hash !== '' && to.pathname === location.pathname)) return
    event.preventDefault()
    navigate(`${to.pathname}${to.search}`, { back: link.classList.contains('back') })
  })
}
