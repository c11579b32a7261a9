from bench.load.process import main

main()
