/** Where the focus is once another screen is shown, and what is read out: WCAG 2.4.3 (focus order), 4.1.3 (messages). */
import { useLayoutEffect } from 'preact/hooks'
import { type Arrival, arrival } from '../../address.ts'
import { installation } from '../../installation.ts'

/** How long a screen may take to show what is to have the focus. */
const waitedMilliseconds = 5000

/** Reads out which screen is shown; the first one is read out by the browser, as the page's title. */
export function Announced({ title }: { title: string }) {
  const arrived = arrival.value
  useLayoutEffect(() => (arrived === null ? undefined : focusOnArrival(arrived)), [arrived])
  return (
    <div class="hidden" role="status" data-announced>
      {arrived !== null && title}
    </div>
  )
}

/** Focuses the heading or, after going back, the link to the previous screen. A key or click in between cancels it. */
function focusOnArrival({ from, back }: Arrival): () => void {
  const events = ['keydown', 'pointerdown']
  const observer = new MutationObserver(() => place())
  const timer = setTimeout(end, waitedMilliseconds)
  let heading: Element | null = null
  function end(): void {
    clearTimeout(timer)
    observer.disconnect()
    for (const name of events) removeEventListener(name, end, true)
  }
  function place(): void {
    const focused = document.activeElement
    const link = back ? linkTo(from) : undefined
    if (focused !== heading && focused?.closest('main, dialog') != null) end()
    else if (link !== undefined) {
      link.focus()
      end()
    } else focusHeading(focused)
  }
  function focusHeading(focused: Element | null): void {
    const shown = document.querySelector<HTMLElement>('main h1')
    if (shown === null || shown === focused) return
    heading = shown
    shown.tabIndex = -1
    shown.focus({ preventScroll: true })
  }
  for (const name of events) addEventListener(name, end, true)
  observer.observe(document.body, { childList: true, subtree: true })
  place()
  return end
}

const linkTo = (path: string): HTMLAnchorElement | undefined =>
  [...document.querySelectorAll<HTMLAnchorElement>('main a[href]:not(.back)')].find(
    ({ pathname }) => pathname === `${installation.path}${path}`,
  )
