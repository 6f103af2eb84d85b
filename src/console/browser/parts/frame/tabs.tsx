/** Links to the parts of a screen, side by side; the one that is shown is brought into view where they do not all fit. */
import { useLayoutEffect, useRef } from 'preact/hooks'
import { href } from '../../address.ts'

interface TabsProps {
  label: string
  path: string
  /** The member of the query that says which part is shown. */
  name: string
  tabs: readonly (readonly [value: string, title: string])[]
  shown: string
}

export function Tabs({ label, path, name, tabs, shown }: TabsProps) {
  const list = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [shown])
  return (
    <nav class="tabs" aria-label={label} ref={list}>
      {tabs.map(([value, title]) => (
        <a key={value} href={href(path, { [name]: value })} aria-current={value === shown ? 'page' : undefined}>
          {title}
        </a>
      ))}
    </nav>
  )
}
