import { type ReactNode, useEffect } from 'react'

type PageProps = {
  readonly title: string
  /** One sentence: the purpose of the page. */
  readonly about?: ReactNode
  /** Primary action last. */
  readonly actions?: ReactNode
  readonly children: ReactNode
}

/** Frame of a page: heading, purpose, actions. Sets the title of the document. */
export function Page({ title, about, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Tollgate`
  }, [title])
  return (
    <div className="mx-auto w-full max-w-[100rem] px-4 py-6 sm:px-6 lg:px-8">
      <header className="mb-6 flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0">
          <h1 className="text-xl break-words">{title}</h1>
          {about && <p className="mt-1 max-w-3xl text-sm text-ink-soft">{about}</p>}
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      <div className="space-y-6">{children}</div>
    </div>
  )
}
