import { CircleUser, LogOut } from 'lucide-react'
import { useWhoami, type Whoami } from '../../api/whoami.ts'
import { IconButton } from '../../components/action/icon-button.tsx'
import { Menu, type MenuItem } from '../../components/action/menu.tsx'
import { formatDateTime } from '../../format/time.ts'

/** The logged-in user with their rights, and logout. Absent where no login is needed. */
export function AccountMenu() {
  const { data } = useWhoami()
  if (data === undefined || data.login === 'none') return null
  const { logoutPath } = data
  const items: MenuItem[] = [{ kind: 'note', title: nameOf(data), lines: linesOf(data) }]
  if (logoutPath !== undefined)
    items.push(
      { kind: 'separator' },
      {
        kind: 'item',
        label: 'Log out',
        icon: LogOut,
        onSelect: () => location.assign(`${logoutPath}?return=${encodeURIComponent('/ui/')}`),
      },
    )
  return <Menu trigger={<IconButton icon={CircleUser} label={`Account: ${nameOf(data)}`} />} items={items} />
}

function nameOf({ name, email }: Whoami): string {
  return name ?? email ?? 'Unnamed user'
}

const methods: Record<Exclude<Whoami['login'], 'none'>, string> = {
  oidc: 'an identity provider',
  jwt: 'a token',
  apiKey: 'a key',
  basic: 'a password',
}

function linesOf({
  name,
  email,
  login,
  claims,
  mayChange,
  mayReveal,
  storage,
  sessionEndsAt,
}: Whoami): string[] {
  const groups = [claims?.['groups'] ?? claims?.['group'] ?? claims?.['roles'] ?? claims?.['role'] ?? []]
    .flat()
    .filter((group) => typeof group === 'string')
  return [
    ...(email !== undefined && email !== name ? [email] : []),
    ...(groups.length === 0 ? [] : [`Groups: ${groups.join(', ')}`]),
    mayChange ? 'May change the configuration' : 'May only look',
    ...(mayReveal ? ['May reveal secrets'] : []),
    ...(storage.readOnly ? ['The configuration is read-only'] : []),
    ...(login === 'none' ? [] : [`Logged in with ${methods[login]}`]),
    ...(sessionEndsAt === undefined ? [] : [`Session ends ${formatDateTime(sessionEndsAt)}`]),
  ]
}
