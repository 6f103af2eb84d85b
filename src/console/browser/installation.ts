/** What the page says of the installation that serves it: a meta element holds it as JSON. */
import type { ConsoleInstallation } from '../routes.ts'

const said = document.querySelector<HTMLMetaElement>('meta[name=gatehouse]')?.content

export const installation: ConsoleInstallation =
  said === undefined
    ? { path: '', base_url: location.origin, gateway_url: location.origin, signed_in: true, set_up: null }
    : JSON.parse(said)
