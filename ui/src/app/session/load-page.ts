import type { ComponentType } from 'react'
import { ApiError, api } from '../../api/client.ts'

type PageModule = { default: ComponentType }

/**
 * Loads the code of a page. Without a session the gateway refuses it: a login is awaited, and the window loads
 * again, because browsers remember a module that failed. A page that is not displayed yet has no input to lose.
 */
export async function loadPage(load: () => Promise<PageModule>): Promise<PageModule> {
  try {
    return await load()
  } catch (error) {
    if (await hasSession()) throw error
    await api('/api/whoami')
    location.reload()
    return await new Promise<never>(() => {})
  }
}

async function hasSession(): Promise<boolean> {
  try {
    await api('/api/whoami', { waitsForLogin: false })
    return true
  } catch (error) {
    return !(error instanceof ApiError && error.status === 401)
  }
}
