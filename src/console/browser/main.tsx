/** The console in the browser: who is there, then the screen that the address names. */
import './language.ts'
import { Fragment, render } from 'preact'
import { useEffect } from 'preact/hooks'
import 'uplot/dist/uPlot.min.css'
import './look.css'
import { followLinks, href, path } from './address.ts'
import { Refusal } from './api/request.ts'
import { api } from './api/routes.ts'
import { installation } from './installation.ts'
import { Frame, StandalonePage } from './parts/frame/frame.tsx'
import { listenToKeys } from './parts/frame/keys.tsx'
import { asRefusal, ErrorNote, useLoaded } from './parts/loaded.tsx'
import { Empty } from './parts/table.tsx'
import { applyTheme } from './preferences.ts'
import { AccountChanged } from './screens/sign-in/account-changed.tsx'
import { AuthorizeProgram } from './screens/sign-in/authorize-program.tsx'
import { Consent } from './screens/sign-in/consent.tsx'
import { Device } from './screens/sign-in/device.tsx'
import { Invitation } from './screens/sign-in/invitation.tsx'
import { takeRefusedSignIn } from './screens/sign-in/providers.tsx'
import { Setup } from './screens/sign-in/setup.tsx'
import { SignIn, SignInAgain } from './screens/sign-in/sign-in.tsx'
import { screenAt, screens } from './screens.tsx'
import {
  acceptCaller,
  caller,
  hasPermission,
  isSessionOver,
  listenToDrafts,
  listenToOtherPages,
  otherAccount,
  screenGeneration,
} from './session.ts'

/** Pages that stand alone, with nothing around them that leads away. */
const alone: Readonly<Record<string, () => preact.JSX.Element>> = {
  '/authorize-program': AuthorizeProgram,
  '/oauth/authorize': Consent,
  '/device': Device,
}

function Console() {
  if (installation.signed_in === null) return <NobodyKnows />
  if (caller.value === undefined) return <FirstLook />
  if (path.value === '/setup') return <Setup />
  if (path.value === '/invitation') return <Invitation />
  if (caller.value === null) return <SignIn />
  const Page = alone[path.value]
  return (
    <Fragment key={screenGeneration.value}>
      {Page === undefined ? <Inside /> : <Page />}
      {isSessionOver.value && <SignInAgain />}
      {otherAccount.value !== null && <AccountChanged />}
    </Fragment>
  )
}

/** Asks who is signed in; the answer decides what is shown, so nothing is until it is there. */
function FirstLook() {
  const found = useLoaded('caller', (signal) =>
    api('GET /v1/auth/session', { signal }).then(acceptCaller, (error: unknown) => {
      if (!(error instanceof Refusal) || error.status !== 401) throw error
      acceptCaller(null)
    }),
  )
  if (found.refusal === null) return null
  return (
    <StandalonePage>
      <ErrorNote refusal={asRefusal(found.refusal)} retry={found.retry} />
    </StandalonePage>
  )
}

const ledgerAway = new Refusal(503, {
  message: 'The control plane cannot reach its database, so it does not know who is signed in. Try again later.',
  code: 'dependency_unavailable',
  param: null,
  requestId: null,
})

/** The page came, but not who is signed in: only the page itself, asked for again, can tell. */
const NobodyKnows = () => (
  <StandalonePage>
    <ErrorNote refusal={ledgerAway} retry={() => location.reload()} />
  </StandalonePage>
)

function Inside() {
  const found = screenAt(path.value)
  const title = found?.screen.title ?? 'Page not found'
  useEffect(() => {
    document.title = `${title} · Gatehouse`
  }, [title])
  if (found === null) {
    return (
      <Frame screens={screens} title={title} ranged={false}>
        <div class="stack">
          <h1>Page not found</h1>
          <p>
            The address may be mistyped. <a href={href('/')}>Go to the overview</a>.
          </p>
        </div>
      </Frame>
    )
  }
  const { screen, id } = found
  const allowed = screen.permission === null || hasPermission(screen.permission)
  return (
    <Frame screens={screens} title={title} ranged={screen.ranged}>
      <div class="stack" key={`${screen.path} ${id}`}>
        {allowed ? (
          screen.show({ id })
        ) : (
          <>
            <h1>{screen.title}</h1>
            <div class="card">
              <Empty title="Permission missing">
                <p>
                  It needs the permission <code>{screen.permission}</code>, which your role lacks. Somebody with the
                  role of owner or admin can change that.
                </p>
              </Empty>
            </div>
          </>
        )}
      </div>
    </Frame>
  )
}

applyTheme()
followLinks()
takeRefusedSignIn()
listenToKeys()
listenToDrafts()
listenToOtherPages(() => api('GET /v1/auth/session', {}))
render(<Console />, document.body)
