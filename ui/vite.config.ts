import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** Admin address of the gateway that `npm run dev -w ui` talks to. */
const gateway = process.env['TOLLGATE_ADMIN'] ?? 'http://127.0.0.1:15000'

export default defineConfig({
  root: import.meta.dirname,
  base: '/ui/',
  plugins: [react(), tailwindcss()],
  build: {
    target: 'es2023',
    // The content security policy permits no `data:` fonts and no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    host: '127.0.0.1',
    proxy: {
      '/api': {
        target: gateway,
        changeOrigin: true,
        // The admin address refuses other origins than its own.
        configure: (proxy) => proxy.on('proxyReq', (request) => request.removeHeader('origin')),
      },
    },
  },
})
