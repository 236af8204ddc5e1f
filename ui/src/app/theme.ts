import { useSyncExternalStore } from 'react'

/** Choice of the user; `system` follows the operating system. */
export type ThemeChoice = 'light' | 'dark' | 'system'

const storageKey = 'tollgate.theme'
const systemDark = window.matchMedia('(prefers-color-scheme: dark)')
const listeners = new Set<() => void>()

export function applyStoredTheme(): void {
  apply()
  systemDark.addEventListener('change', apply)
}

/** The chosen theme and its setter. The choice survives a reload. */
export function useTheme(): [ThemeChoice, (choice: ThemeChoice) => void] {
  return [useSyncExternalStore(subscribe, readChoice), setTheme]
}

/** The theme on the screen, for canvases that read colours themselves. */
export function useShownTheme(): 'light' | 'dark' {
  return useSyncExternalStore(subscribe, shownTheme)
}

function readChoice(): ThemeChoice {
  try {
    const stored = localStorage.getItem(storageKey)
    return stored === 'light' || stored === 'dark' ? stored : 'system'
  } catch {
    // Storage is blocked by the browser's settings: the theme follows the system.
    return 'system'
  }
}

export function setTheme(choice: ThemeChoice): void {
  try {
    localStorage.setItem(storageKey, choice)
  } catch {
    // The choice lasts until the page is closed.
  }
  apply(choice)
}

function shownTheme(): 'light' | 'dark' {
  return document.documentElement.dataset['theme'] === 'dark' ? 'dark' : 'light'
}

function apply(chosen: unknown = undefined): void {
  const choice = chosen === 'light' || chosen === 'dark' || chosen === 'system' ? chosen : readChoice()
  const dark = choice === 'dark' || (choice === 'system' && systemDark.matches)
  document.documentElement.dataset['theme'] = dark ? 'dark' : 'light'
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
