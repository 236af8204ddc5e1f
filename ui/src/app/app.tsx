import { QueryClientProvider } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { Route, Router, Switch } from 'wouter'
import { createQueryClient } from '../api/query-client.ts'
import { Toasts } from '../components/feedback/toasts.tsx'
import { TooltipProvider } from '../components/feedback/tooltip.tsx'
import { guardNavigation } from '../save/unsaved.tsx'
import { DecodedParameters, useRawLocation, useRawSearch } from './addresses.tsx'
import { ErrorBoundary } from './error-boundary.tsx'
import { LoadingPage, MissingPage } from './page-states.tsx'
import { pageRoutes } from './routes.ts'
import { loadPage } from './session/load-page.ts'
import { LoginDialog } from './session/login-dialog.tsx'
import { RenewedPage } from './session/renewed-page.tsx'
import { renewedPath } from './session/session.ts'
import { Shell } from './shell/shell.tsx'

const pages = pageRoutes.map(({ path, load }) => ({ path, Content: lazy(() => loadPage(load)) }))

/** The console: providers, shell, and the page of the address. */
export function App() {
  const [queryClient] = useState(createQueryClient)
  return (
    <QueryClientProvider client={queryClient}>
      <TooltipProvider delayDuration={350}>
        <Router base="/ui" hook={useRawLocation} searchHook={useRawSearch} aroundNav={guardNavigation}>
          <Switch>
            <Route path={renewedPath}>
              <RenewedPage />
            </Route>
            <Route>
              <Shell>
                <ErrorBoundary>
                  <Suspense fallback={<LoadingPage />}>
                    <DecodedParameters>
                      <Switch>
                        {pages.map(({ path, Content }) => (
                          <Route key={path} path={path}>
                            <Content />
                          </Route>
                        ))}
                        <Route>
                          <MissingPage />
                        </Route>
                      </Switch>
                    </DecodedParameters>
                  </Suspense>
                </ErrorBoundary>
              </Shell>
            </Route>
          </Switch>
          <LoginDialog />
        </Router>
        <Toasts />
      </TooltipProvider>
    </QueryClientProvider>
  )
}
