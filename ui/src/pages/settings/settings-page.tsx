import { useWhoami, type Whoami } from '../../api/whoami.ts'
import { type ThemeChoice, useTheme } from '../../app/theme.ts'
import { Facts } from '../../components/data/facts.tsx'
import { ErrorState } from '../../components/feedback/error-state.tsx'
import { Notice } from '../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../components/feedback/skeleton.tsx'
import { Segmented } from '../../components/form/segmented.tsx'
import { Card } from '../../components/layout/card.tsx'
import { Page } from '../../components/layout/page.tsx'
import { formatDateTime } from '../../format/time.ts'
import { PolicyList } from '../policies/policy-list.tsx'

/** Theme, session, and who may use the console. */
export default function SettingsPage() {
  const [theme, setTheme] = useTheme()
  const whoami = useWhoami()
  return (
    <Page
      title="Console settings"
      about="Who may open this console, who may change the configuration with it, and how it looks."
    >
      <div className="grid grid-cols-1 gap-6 lg:grid-cols-2">
        <Card title="Appearance" about="Stored in this browser">
          <Segmented<ThemeChoice>
            label="Theme"
            value={theme}
            options={[
              { value: 'system', label: 'System' },
              { value: 'light', label: 'Light' },
              { value: 'dark', label: 'Dark' },
            ]}
            onChange={setTheme}
          />
        </Card>
        <Card title="Session">
          {whoami.error ? (
            <ErrorState error={whoami.error} onRetry={() => void whoami.refetch()} />
          ) : whoami.data ? (
            <Session whoami={whoami.data} />
          ) : (
            <SkeletonLines />
          )}
        </Card>
      </div>
      <section aria-labelledby="console-policies" className="space-y-4">
        <div>
          <h2 id="console-policies" className="text-base">
            Policies of the console
          </h2>
          <p className="mt-0.5 max-w-3xl text-sm text-ink-soft">
            They apply on gateways that serve the console, <code>ui.gateways</code> in the configuration file.
            The admin address has no login and accepts connections of this machine only.
          </p>
        </div>
        {whoami.data?.login === 'none' && (
          <Notice title="You use the admin address, which has no login">
            For other machines, set <code>ui.gateways</code> and a policy that authenticates.
          </Notice>
        )}
        <PolicyList kind="ui.policy" path="/settings/policies" />
      </section>
    </Page>
  )
}

const logins: Record<Whoami['login'], string> = {
  none: 'None: local connection',
  oidc: 'OpenID Connect',
  jwt: 'Token (JWT)',
  apiKey: 'API key',
  basic: 'User and password',
}

function Session({ whoami }: { whoami: Whoami }) {
  const { storage } = whoami
  const database = storage.database === 'postgres' ? 'PostgreSQL' : 'SQLite'
  return (
    <Facts
      facts={[
        ['User', whoami.name ?? whoami.email],
        ['Login', logins[whoami.login]],
        ['Ends', whoami.sessionEndsAt && formatDateTime(whoami.sessionEndsAt)],
        ['May change the configuration', whoami.mayChange ? 'Yes' : 'No'],
        ['May read secrets', whoami.mayReveal ? 'Yes' : 'No'],
        [
          'Changes are stored in',
          storage.readOnly ? 'Nothing: read-only' : storage.mode === 'file' ? 'The file' : database,
        ],
        ['Gateway version', whoami.version],
      ]}
    />
  )
}
