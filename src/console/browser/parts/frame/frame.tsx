/** What stands around every screen: where one can go, the time range, search, theme and account. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { href, navigate, path } from '../../address.ts'
import { applyTheme, isDark } from '../../preferences.ts'
import type { Screen } from '../../screen.ts'
import { caller, hasPermission } from '../../session.ts'
import { RangePicker } from '../forms/range-picker.tsx'
import { Icon } from '../icon.tsx'
import { userText } from '../user-text.tsx'
import { Announced } from './arrival.tsx'
import { KeyList, type Keys, useKeys } from './keys.tsx'
import { Toasts } from './toast.tsx'
import { WaitingOffers, WaitingRequests } from './waiting.tsx'

const menuOpen = signal(false)

const Mark = () => (
  <>
    <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M7 26V12l9-6 9 6v14h-6v-7a3 3 0 0 0-6 0v7z" fill="currentColor" />
    </svg>
    Gatehouse
  </>
)

/** On pages that stand alone it leads nowhere. */
export const Brand = () => (
  <div class="brand">
    <Mark />
  </div>
)

interface FrameProps {
  screens: readonly Screen[]
  /** Of the screen that is shown. */
  title: string
  /** Whether the time range governs it. */
  ranged: boolean
  children: ComponentChildren
}

export function Frame({ screens, title, ranged, children }: FrameProps) {
  const inMenu = screens.filter((screen) => screen.menu !== undefined)
  const search = useRef<HTMLInputElement>(null)
  const menu = useRef<HTMLButtonElement>(null)
  const here = path.value
  useLayoutEffect(() => {
    menuOpen.value = false
  }, [here])
  useKeys(
    useMemo(
      (): Keys => ({
        '/': { does: 'Search', run: () => search.current?.focus() },
        t: { does: 'Switch theme', run: switchTheme },
        ...Object.fromEntries(
          inMenu.flatMap(({ menu, title, path: to }) =>
            menu === undefined ? [] : [[`g ${menu.key}`, { does: `Go to ${title}`, run: () => navigate(href(to)) }]],
          ),
        ),
      }),
      [],
    ),
  )
  const closeMenu = () => {
    menuOpen.value = false
    menu.current?.focus()
  }
  useKeys(
    useMemo(
      (): Keys => (menuOpen.value ? { Escape: { does: 'Close the menu', run: closeMenu } } : {}),
      [menuOpen.value],
    ),
  )
  return (
    <div class={`frame ${menuOpen.value ? 'open' : ''}`}>
      <SkipTo to="main" what="content" />
      <SkipTo to="main section.table" what="list" />
      <nav aria-label="Screens">
        <a class="brand" href={href('/')}>
          <Mark />
        </a>
        <ul>
          {inMenu
            .filter(({ permission }) => permission === null || hasPermission(permission))
            .map((screen) => (
              <MenuItem key={screen.path} screen={screen} />
            ))}
        </ul>
      </nav>
      <header>
        <button
          type="button"
          class="plain icon menu"
          ref={menu}
          aria-label="Menu"
          aria-expanded={menuOpen.value}
          onClick={() => (menuOpen.value = !menuOpen.value)}
        >
          <Icon name={menuOpen.value ? 'close' : 'menu'} />
        </button>
        <form
          class="search"
          onSubmit={(event) => {
            event.preventDefault()
            const words = search.current?.value.trim() ?? ''
            if (words !== '') navigate(href('/search', { q: words }))
          }}
        >
          <input ref={search} type="search" aria-label="Search, or paste an id" placeholder="Search   /" />
        </form>
        {ranged && <RangePicker />}
        <button type="button" class="plain icon" aria-label="Switch theme" onClick={switchTheme}>
          <Icon name="theme" />
        </button>
        <a
          class="button plain account"
          href={href('/settings')}
          aria-label={`Account of ${caller.value?.user?.name ?? 'nobody'}`}
        >
          <Icon name="people" />
          <span>{caller.value?.user?.name}</span>
        </a>
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <Announced title={title} />
      <KeyList />
      <Toasts />
    </div>
  )
}

/** Seen while it has the focus, and there while the page has what it leads to (WCAG 2.4.1). */
const SkipTo = ({ to, what }: { to: string; what: 'content' | 'list' }) => (
  <button
    type="button"
    class={what === 'list' ? 'skip to-list' : 'skip'}
    onClick={() => document.querySelector<HTMLElement>(to)?.focus()}
  >
    Skip to the {what}
  </button>
)

const switchTheme = (): void => applyTheme(isDark() ? 'light' : 'dark')

const isWithin = (screen: Screen): boolean =>
  screen.path === '/' ? path.value === '/' : `${path.value}/`.startsWith(`${screen.path}/`)

const MenuItem = ({ screen }: { screen: Screen }) => (
  <li>
    <a href={href(screen.path)} aria-current={isWithin(screen) ? 'page' : undefined}>
      {screen.menu !== undefined && <Icon name={screen.menu.icon} />}
      {screen.title}
      {screen.path === '/escalations' && <WaitingRequests />}
      {screen.path === '/catalog' && <WaitingOffers />}
    </a>
  </li>
)

/** The head of a screen: what it is, and what can be done on it. */
export function PageHeader({
  title,
  back,
  children,
}: {
  title: ComponentChildren
  back?: readonly [to: string, title: string]
  children?: ComponentChildren
}) {
  return (
    <div class="head">
      <div>
        {back !== undefined && (
          <a class="back" href={href(back[0])}>
            {back[1]}
          </a>
        )}
        <h1>{userText(title)}</h1>
      </div>
      {children !== undefined && <div class="row">{children}</div>}
    </div>
  )
}

/** A page with one question on it and nothing to lead away. */
export const StandalonePage = ({ children }: { children: ComponentChildren }) => (
  <div class="alone">
    <main>{children}</main>
    <Toasts />
  </div>
)
