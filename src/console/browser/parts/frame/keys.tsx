/** Keys that do something wherever one is; screens add their own while they are shown. */
import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { Dialog } from './dialog.tsx'

export type Keys = Readonly<Record<string, { does: string; run(): void }>>

const layers: Keys[] = []
const listShown = signal(false)
/** The first key of a pair such as `g t`, and until when it counts, by the clock of events. */
let first: { key: string; until: number } | null = null
const pairMilliseconds = 1200

/**
 * Adds keys while the component is there, from the moment it can be seen on: who is fast types before the next picture.
 * A pair is written with a blank: `g t`.
 */
export function useKeys(keys: Keys): void {
  useLayoutEffect(() => {
    layers.push(keys)
    return () => {
      layers.splice(layers.indexOf(keys), 1)
    }
  }, [keys])
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest('input, textarea, select, dialog[open], [contenteditable]') !== null

export function listenToKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
    // When a key was pressed counts, not when a busy page comes to it.
    const pair = first !== null && first.until > event.timeStamp ? `${first.key} ${event.key}` : null
    first = null
    const found = (pair === null ? undefined : binding(pair)) ?? binding(event.key)
    if (found !== undefined) {
      event.preventDefault()
      found.run()
    } else if (event.key === '?') {
      listShown.value = true
    } else if (layers.some((keys) => Object.keys(keys).some((name) => name.startsWith(`${event.key} `)))) {
      first = { key: event.key, until: event.timeStamp + pairMilliseconds }
    }
  })
}

const binding = (key: string) => layers.findLast((keys) => keys[key] !== undefined)?.[key]

export const showKeys = (): void => {
  listShown.value = true
}

export function KeyList() {
  if (!listShown.value) return null
  const all = new Map(layers.flatMap((keys) => Object.entries(keys)))
  return (
    <Dialog title="Keyboard" close={() => (listShown.value = false)}>
      <dl class="facts">
        {[...all].map(([key, { does }]) => (
          <>
            <dt key={`${key}-key`}>
              {key.split(' ').map((part) => (
                <kbd key={part}>{part}</kbd>
              ))}
            </dt>
            <dd key={key}>{does}</dd>
          </>
        ))}
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>This list</dd>
      </dl>
      <form method="dialog" class="row end">
        <button type="submit">Close</button>
      </form>
    </Dialog>
  )
}
