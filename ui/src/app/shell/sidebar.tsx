import { Link, useLocation } from 'wouter'
import { useWhoami } from '../../api/whoami.ts'
import { classNames } from '../../components/class-names.ts'
import { type NavigationItem, navigation } from '../navigation.ts'
import { BrandMark } from './brand.tsx'

/** Navigation of the console. `onNavigate` closes the drawer of narrow windows. */
export function Sidebar({ onNavigate }: { onNavigate?: () => void }) {
  const [location] = useLocation()
  const { data } = useWhoami()
  return (
    <div className="flex h-full flex-col bg-sunken">
      <Link href="/" onClick={onNavigate} className="flex items-center gap-2.5 px-4 pt-4 pb-3">
        <BrandMark />
        <span className="text-lg font-semibold tracking-tight">Tollgate</span>
      </Link>
      <nav aria-label="Pages" className="min-h-0 flex-1 space-y-4 overflow-y-auto px-2.5 pb-4">
        {navigation.map((group) => (
          <div key={group.label}>
            <div className="px-2.5 pt-1 pb-1 text-2xs font-medium tracking-wide text-ink-faint uppercase">
              {group.label}
            </div>
            <ul className="space-y-px">
              {group.items.map((item) => (
                <li key={item.path}>
                  <SidebarLink item={item} active={isActive(item.path, location)} onNavigate={onNavigate} />
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <div className="border-t border-line px-5 py-2.5 text-2xs text-ink-faint">
        {data ? `Version ${data.version}` : '\u00a0'}
      </div>
    </div>
  )
}

function SidebarLink({
  item,
  active,
  onNavigate,
}: {
  item: NavigationItem
  active: boolean
  onNavigate: (() => void) | undefined
}) {
  return (
    <Link
      href={item.path}
      onClick={onNavigate}
      aria-current={active ? 'page' : undefined}
      className={classNames(
        'flex h-8 items-center gap-2.5 rounded-md px-2.5 text-sm transition-colors',
        active
          ? 'bg-surface font-medium text-ink shadow-card'
          : 'text-ink-soft hover:bg-hover hover:text-ink',
      )}
    >
      <item.icon
        className={classNames('size-4 shrink-0', active ? 'text-accent' : 'text-ink-faint')}
        aria-hidden
      />
      {item.label}
    </Link>
  )
}

function isActive(path: string, location: string): boolean {
  return path === '/' ? location === '/' : location === path || location.startsWith(`${path}/`)
}
