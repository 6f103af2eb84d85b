/** Keeps a live list still while somebody reads it, so that a row does not move away from under the pointer. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { EventPage } from './arrivals.ts'

interface Read {
  /** Of which question it is the answer: another one is shown at once. */
  key: string
  page: EventPage
}

/** The page to show, how many newer events wait, and what tells that the list is being read. */
export function useHeldPage(read: Read | undefined) {
  const element = useRef<HTMLDivElement>(null)
  const shown = useRef<Read | undefined>(undefined)
  const [touched, setTouched] = useState(false)
  const [scrolled, setScrolled] = useState(false)
  useEffect(() => {
    const look = () => {
      const list = element.current
      const inner = list?.querySelector('section.table')?.scrollTop ?? 0
      setScrolled(list !== null && (inner > 0 || list.getBoundingClientRect().top < 0))
    }
    // Captured, because the scrolling of an element within does not bubble.
    addEventListener('scroll', look, { capture: true, passive: true })
    return () => removeEventListener('scroll', look, { capture: true })
  }, [])
  const isRead = touched || scrolled
  if (!isRead || shown.current === undefined || shown.current.key !== read?.key) shown.current = read
  const first = shown.current?.page.events[0]?.timestamp
  const newer = read?.page.events.filter(({ timestamp }) => first !== undefined && timestamp > first).length ?? 0
  return {
    page: shown.current?.page,
    newer,
    /** Goes to the newest event. */
    showNewer: () => {
      element.current?.querySelector('section.table')?.scrollTo(0, 0)
      window.scrollTo(0, 0)
      setTouched(false)
      setScrolled(false)
    },
    reading: {
      ref: element,
      onPointerEnter: () => setTouched(true),
      onPointerLeave: () => setTouched(false),
      onFocusIn: () => setTouched(true),
      onFocusOut: () => setTouched(false),
    },
  }
}
