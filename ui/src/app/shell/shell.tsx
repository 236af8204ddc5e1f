import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { SessionBanner } from '../session/session-banner.tsx'
import { ConfigBanner } from './config-banner.tsx'
import { Drawer } from './drawer.tsx'
import { notePage } from './recent-pages.ts'
import { Sidebar } from './sidebar.tsx'
import { TopBar } from './top-bar.tsx'

const CommandPalette = lazy(() => import('./palette/palette.tsx'))

/** Frame of all pages: sidebar, top bar, state of the configuration, command palette. */
export function Shell({ children }: { children: ReactNode }) {
  const [menuOpen, setMenuOpen] = useState(false)
  const [paletteOpen, setPaletteOpen] = useState(false)
  const main = useRef<HTMLElement>(null)
  const [location] = useLocation()
  const shown = useRef(location)
  useEffect(() => {
    notePage(location)
    if (shown.current === location) return
    shown.current = location
    window.scrollTo(0, 0)
    // A new page is announced, and the next Tab continues in it.
    main.current?.focus({ preventScroll: true })
  }, [location])
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      setPaletteOpen((open) => !open)
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [])
  return (
    <div className="min-h-dvh lg:pl-60">
      <button
        type="button"
        className="fixed top-2 left-2 z-60 -translate-y-16 rounded-md bg-accent px-3 py-2 text-sm font-medium text-on-accent focus:translate-y-0"
        onClick={() => main.current?.focus()}
      >
        Skip to content
      </button>
      <aside className="fixed inset-y-0 left-0 z-20 hidden w-60 border-r border-line lg:block">
        <Sidebar />
      </aside>
      <Drawer open={menuOpen} onOpenChange={setMenuOpen}>
        <Sidebar onNavigate={() => setMenuOpen(false)} />
      </Drawer>
      <TopBar onMenu={() => setMenuOpen(true)} onSearch={() => setPaletteOpen(true)} />
      <SessionBanner />
      <ConfigBanner />
      <main id="main" ref={main} tabIndex={-1} className="outline-none">
        {children}
      </main>
      {paletteOpen && (
        <Suspense>
          <CommandPalette onClose={() => setPaletteOpen(false)} />
        </Suspense>
      )}
    </div>
  )
}
