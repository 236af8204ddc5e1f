import { Menu as MenuIcon, Monitor, Moon, Search, Sun } from 'lucide-react'
import { IconButton } from '../../components/action/icon-button.tsx'
import { type ThemeChoice, useTheme } from '../theme.ts'
import { AccountMenu } from './account-menu.tsx'
import { ConfigState } from './config-state.tsx'

const themes: Record<ThemeChoice, { next: ThemeChoice; label: string; icon: typeof Sun }> = {
  system: { next: 'light', label: 'Theme: system', icon: Monitor },
  light: { next: 'dark', label: 'Theme: light', icon: Sun },
  dark: { next: 'system', label: 'Theme: dark', icon: Moon },
}

/** Bar above all pages: navigation of narrow windows, search, state of the configuration, theme, account. */
export function TopBar({ onMenu, onSearch }: { onMenu(): void; onSearch(): void }) {
  const [theme, setTheme] = useTheme()
  const { next, label, icon } = themes[theme]
  return (
    <header className="sticky top-0 z-30 flex h-13 items-center gap-2 border-b border-line bg-canvas px-3 sm:px-5">
      <span className="lg:hidden">
        <IconButton icon={MenuIcon} label="Open navigation" onClick={onMenu} />
      </span>
      <button
        type="button"
        onClick={onSearch}
        className="flex h-8 w-full max-w-80 items-center gap-2 rounded-md border border-line bg-surface px-2.5 text-sm text-ink-faint shadow-card hover:text-ink"
      >
        <Search className="size-4" aria-hidden />
        <span className="flex-1 truncate text-left">Search or jump to</span>
        <kbd className="rounded border border-line px-1 text-2xs max-sm:hidden">Ctrl K</kbd>
      </button>
      <div className="ml-auto flex items-center gap-1">
        <ConfigState />
        <IconButton icon={icon} label={label} onClick={() => setTheme(next)} />
        <AccountMenu />
      </div>
    </header>
  )
}
