import { CircleUser, LogOut } from 'lucide-react'
import { useWhoami } from '../../api/whoami.ts'
import { IconButton } from '../../components/action/icon-button.tsx'
import { Menu, type MenuItem } from '../../components/action/menu.tsx'

/** The logged-in user, with logout. Absent where no login is needed. */
export function AccountMenu() {
  const { data } = useWhoami()
  if (data === undefined || data.login === 'none') return null
  const { logoutPath } = data
  const name = data.name ?? data.email ?? 'Account'
  const items: MenuItem[] = [
    {
      kind: 'item',
      label: data.mayChange ? `${name}: may change` : `${name}: read only`,
      disabled: true,
      onSelect() {},
    },
  ]
  if (logoutPath !== undefined)
    items.push({ kind: 'item', label: 'Log out', icon: LogOut, onSelect: () => location.assign(logoutPath) })
  return <Menu trigger={<IconButton icon={CircleUser} label={name} />} items={items} />
}
