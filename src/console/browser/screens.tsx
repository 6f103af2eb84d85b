/**
 * Every screen, one line each: where it is, what it is called, what one must be allowed to see it. To add one, write its
 * file in `screens/` and its line here.
 */
import type { ComponentChild } from 'preact'
import type { Permission } from '../../tokens/permissions.ts'
import type { IconName } from './parts/icon.tsx'
import { NewToken } from './screens/new-token.tsx'
import { Settings } from './screens/settings.tsx'
import { TokenScreen } from './screens/token.tsx'
import { Tokens } from './screens/tokens.tsx'

export interface Screen {
  /** Below the console's address; `{id}` stands for one part. */
  path: string
  title: string
  /** Null: everybody who is signed in. */
  permission: Permission | null
  /** Where it is in the menu: its drawing, and the key that follows `g`. */
  menu?: { icon: IconName; key: string }
  show(part: { id: string }): ComponentChild
}

export const screens: readonly Screen[] = [
  {
    path: '/tokens',
    title: 'Tokens',
    permission: 'tokens:read',
    menu: { icon: 'tokens', key: 'k' },
    show: () => <Tokens />,
  },
  { path: '/tokens/new', title: 'New token', permission: 'tokens:write', show: () => <NewToken /> },
  { path: '/tokens/{id}', title: 'Token', permission: 'tokens:read', show: ({ id }) => <TokenScreen id={id} /> },
  {
    path: '/settings',
    title: 'Settings',
    permission: null,
    menu: { icon: 'settings', key: 's' },
    show: () => <Settings />,
  },
]

/** The screen at a path, and the part of the path that it is about. Exact paths go before those with a part. */
export function screenAt(path: string): { screen: Screen; id: string } | null {
  const exact = screens.find((screen) => screen.path === path)
  if (exact !== undefined) return { screen: exact, id: '' }
  for (const screen of screens) {
    const [before = '', after] = screen.path.split('{id}')
    if (after === undefined || !path.startsWith(before) || !path.endsWith(after)) continue
    const id = path.slice(before.length, path.length - after.length)
    if (id !== '' && !id.includes('/')) return { screen, id: decodeURIComponent(id) }
  }
  return null
}
